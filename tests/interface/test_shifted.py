"""Nothing but the interface knows its numbers: with other ones, both engines, faults, streams and saved executables do the same."""

import json

import pytest
from shifted_interface import run_python, shifted_project

from pypoplar import Executable, FileLoadError

TESTS = (
    "tests/engine/test_faults.py",
    "tests/engine/test_streams.py",
    pytest.param("tests/engine/test_equality.py", marks=pytest.mark.slow),  # the law of random programs
    pytest.param("tests/executable/test_file.py", marks=pytest.mark.slow),
)
NUMBERS = """
import enum, importlib, json, pkgutil
import pypoplar.interface
found = {}
for module in pkgutil.iter_modules(pypoplar.interface.__path__, "pypoplar.interface."):
    for name, one in vars(importlib.import_module(module.name)).items():
        if isinstance(one, type) and issubclass(one, enum.IntEnum):
            found |= {f"{name}.{member.name}": int(member) for member in one}
print(json.dumps([pypoplar.__file__, found]))
"""


SAVE = """
import sys
sys.path.insert(0, "tests/helpers")
from executable_programs import PROGRAMS
PROGRAMS["transfers"]().save("shifted.npz")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("shifted")
    shifted_project(made)
    return made


def numbers(folder):
    done = run_python(folder, "-c", NUMBERS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_number_is_another_one(folder, request):
    place, shifted = numbers(folder)
    assert place.startswith(str(folder))
    _, usual = numbers(request.config.rootpath)
    assert shifted.keys() == usual.keys()
    assert len(usual) > 150
    assert [name for name in usual if usual[name] == shifted[name]] == []


@pytest.mark.no_cover
@pytest.mark.parametrize("file", TESTS)
def test_both_engines_faults_streams_and_saved_executables_work_with_other_numbers(folder, file):
    """Damage to a file's bytes and options has no such numbers."""
    done = run_python(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file, "-k", "not damaged and not flipped")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_an_executable_of_another_layout_is_refused_by_name(folder):
    done = run_python(folder, "-c", SAVE)
    assert done.returncode == 0, done.stderr
    with pytest.raises(FileLoadError, match=r"of the layout '\w+', written by pypoplar .*; compile and save the program again"):
        Executable.load(folder / "shifted.npz")
