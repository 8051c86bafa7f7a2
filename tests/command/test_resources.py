"""The files beside the code are found in a checkout."""

import pytest

from pypoplar import resources
from pypoplar.errors import FileLoadError


def test_a_codelet_file_is_found_and_a_missing_one_named():
    directory = resources.directory("codelets")
    file = sorted(one.name for one in directory.glob("*.py"))[0]
    assert resources.codelets(file) == directory / file
    with pytest.raises(FileLoadError, match=r"'nope\.py'"):
        resources.codelets("nope.py")


def test_a_missing_directory_is_named():
    with pytest.raises(FileLoadError, match="'nowhere'"):
        resources.directory("nowhere")


def test_what_the_wheel_carries_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "pypoplar")
    (tmp_path / "codelets").mkdir()
    assert resources.directory("codelets") == tmp_path / "codelets"
    (tmp_path / "pypoplar" / "_resources" / "codelets").mkdir(parents=True)
    assert resources.directory("codelets") == tmp_path / "pypoplar" / "_resources" / "codelets"


def test_the_regressions_data_is_there():
    assert (resources.directory("tutorials") / "data" / "digits.npz").is_file()
