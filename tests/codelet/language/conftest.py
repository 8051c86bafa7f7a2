"""What the type checker says of users' programs."""

import itertools

import pytest


@pytest.fixture(scope="session")
def type_check(tmp_path_factory):
    """What mypy prints of a text, and its exit code. What it finds out of pypoplar it keeps for the next text."""
    api = pytest.importorskip("mypy.api")
    folder, numbers = tmp_path_factory.mktemp("types"), itertools.count()

    def check(text):
        file = folder / f"user{next(numbers)}.py"
        file.write_text(text)
        said, errors, code = api.run([str(file), "--strict", "--cache-dir", str(folder / "cache"), "--follow-imports", "silent"])
        assert errors == ""
        return said, code

    return check
