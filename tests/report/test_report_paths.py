"""Profiles, pages and traces are files: what is no regular file is neither read nor replaced."""

import os
import stat

import pytest
from profile_reports import full_report

from benchmarks.made_report import made_report
from pypoplar import FileLoadError, pva
from pypoplar.report.perfetto.perfetto_trace import write_trace

WRITERS = {
    "profile": pva.save_report,
    "page": pva.write_page,
    "comparison": lambda report, path: pva.write_comparison(report, report, path),
    "trace": write_trace,
}


@pytest.fixture(params=["a named pipe", "/dev/null", "/dev/zero"])
def irregular(request, tmp_path, stopwatch):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    return place if request.param == "a named pipe" else request.param


@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_written_onto_what_is_no_regular_file(writer, irregular):
    report = full_report() if writer == "trace" else made_report(tiles=4, steps=6, events=12, variables=3)
    kind = stat.S_IFMT(os.stat(irregular).st_mode)
    with pytest.raises(OSError, match=rf"Is a (named pipe|character device), not a regular file: '{irregular}'"):
        WRITERS[writer](report, irregular)
    assert stat.S_IFMT(os.stat(irregular).st_mode) == kind


def test_no_profile_is_read_from_what_is_no_regular_file(irregular):
    text = rf"{irregular}: cannot be read: Is a (named pipe|character device), not a regular file"
    with pytest.raises(FileLoadError, match=text):
        pva.openReport(irregular)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_stays_and_its_file_is_replaced_as_a_whole(writer, tmp_path, monkeypatch):
    report = full_report() if writer == "trace" else made_report(tiles=4, steps=6, events=12, variables=3)
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    file.write_bytes(b"before")

    def fail(*arguments):
        raise OSError("no space left")

    with monkeypatch.context() as context, pytest.raises(OSError, match="no space left"):
        context.setattr("os.replace", fail)
        WRITERS[writer](report, link)
    assert file.read_bytes() == b"before"
    WRITERS[writer](report, link)
    assert link.is_symlink()
    assert len(file.read_bytes()) > 100
    assert sorted(tmp_path.iterdir()) == [file, link]
