"""Which items are slow beside those that are marked so: one set of parameters of a test may be dear where others are quick.

They stand in `tests/slow_items.txt`, one a line, as pytest names them. ``python tests/helpers/slow_items.py RUN.xml`` adds to the
list, of a run with ``--junitxml=RUN.xml``: all items that took longer than `LONGEST` times the mean of the run. Of a test whose
sets of parameters are all dear, the quickest stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).parents[1]
LIST = TESTS / "slow_items.txt"
LONGEST = 5.0
AT_ALL_TIMES = (  # what any change can break
    *("tests/documents/", "tests/engine/test_equality.py"),
    *("tests/test_import.py", "tests/test_rooms.py", "tests/test_slow_items.py", "tests/test_tracebacks.py"),
    *("tests/test_changed_tests.py::test_every_", "tests/test_changed_tests.py::test_what_the_table"),  # of our own files
)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves items out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those of the list."""
    slow = slow_items()
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")


def slow_items() -> frozenset[str]:
    """The names of the list."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def items_of_run(path: Path) -> Iterator[tuple[str, float]]:
    """The items of a run by their names, with the seconds that each took."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        parts = case.get("classname", "").split(".")
        places = [Path(*parts[:end]).with_suffix(".py") for end in range(len(parts), 0, -1)]
        there = ((place, len(parts) - number) for number, place in enumerate(places) if (TESTS.parent / place).is_file())
        file, end = next(there, (None, 0))
        if file is None:
            raise ValueError(f"{path}: there is no file of {case.get('classname')}: it is a run of another project")
        yield "::".join([file.as_posix(), *parts[end:], case.get("name", "")]), float(case.get("time", 0))


def dear(items: Iterable[tuple[str, float]]) -> list[str]:
    """Those that took too long for the usual run."""
    timed = list(items)
    most = LONGEST * sum(seconds for _, seconds in timed) / len(timed)
    sets: dict[str, list[tuple[float, str]]] = {}
    for name, seconds in timed:
        sets.setdefault(name.partition("[")[0], []).append((seconds, name))
    staying = {min(own)[1] for own in sets.values() if len(own) > 1}
    return sorted(name for name, seconds in timed if seconds > most and name not in staying and not name.startswith(AT_ALL_TIMES))


if __name__ == "__main__":
    found = {*slow_items(), *dear(items_of_run(Path(sys.argv[1])))}
    LIST.write_text("".join(f"{name}\n" for name in sorted(found)), encoding="utf-8")
