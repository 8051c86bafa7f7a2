"""The old path of `pypoplar.pva.save_report`, and of `load_report`, which `pypoplar.pva.openReport` calls."""

from pypoplar.pva import save_report as save_report
from pypoplar.report.file.sqlite_file import load_report as load_report
