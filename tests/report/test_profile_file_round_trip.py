"""A report that is saved and loaded is the same report."""

import tempfile
from pathlib import Path

from hypothesis import given
from profile_reports import differences, reports

from pypoplar.report.file.sqlite_file import load_report, save_report


@given(reports())
def test_every_attribute_of_a_report_comes_back(report):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.pop"
        save_report(report, path)
        assert differences(report, load_report(path)) == []
