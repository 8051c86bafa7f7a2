"""The old path of `pypoplar.pva.save_report`."""

from pypoplar.report.file.sqlite_file import load_report as load_report
from pypoplar.report.file.sqlite_file import save_report as save_report
