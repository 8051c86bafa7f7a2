"""Which tests run which lines, from one run of the tests with coverage, which is kept as long as no file changes."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from coverage import CoverageData

from mutation.copied_tree import CopiedTree
from mutation.test_order import SECONDS

AT_IMPORT = ""


class FailingTests(Exception):
    """Tests that fail without a mutant."""


@frozen
class Covering:
    """The tests of each line of some modules, and how long each test takes."""

    tests: Mapping[str, Mapping[int, Sequence[str]]]  # module -> line -> tests
    seconds: Mapping[str, float]

    def of(self, module: str, first: int, last: int) -> list[str]:
        """The tests that run one of some lines, the fastest first.

        What runs at import decides about all of a module: its tests are those that run any of its lines.
        """
        lines = self.tests.get(module, {})
        found = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        if found == {AT_IMPORT}:
            found = {test for tests in lines.values() for test in tests}
        return sorted(found - {AT_IMPORT}, key=lambda test: (self.seconds.get(test, 0.0), test))


def lines_of_statement(source: str, line: int) -> tuple[int, int]:
    """The lines of the smallest statement at a line; of one with a body those before it."""
    found = (line, line)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
            begin = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            if begin <= line <= max(end, begin):
                found = (begin, max(end, begin))  # inner ones come later
    return found


def covering(copy: CopiedTree, modules: Sequence[str], tests: Sequence[str], kept: Path) -> Covering:
    """What was measured for these files, or is measured now.

    Raises
    ------
    FailingTests
        With what pytest says.
    """
    place = kept / hashlib.sha256(json.dumps([copy.digest(), modules, tests]).encode()).hexdigest()[:16]
    data, seconds = place / "lines.coverage", place / "seconds.json"
    if not seconds.exists():
        place.mkdir(parents=True, exist_ok=True)
        data.unlink(missing_ok=True)
        _measure(copy, modules, tests, data, seconds)
    return _read(copy, modules, data, json.loads(seconds.read_text()))


def _measure(copy: CopiedTree, modules: Iterable[str], tests: Sequence[str], data: Path, seconds: Path) -> None:
    settings = copy.root / "build" / "mutants.coveragerc"
    settings.parent.mkdir(exist_ok=True)
    lines = ["[run]", f"data_file = {data}", "include ="]
    settings.write_text("\n".join([*lines, *(f"    {copy.root / module}" for module in modules)]) + "\n")
    command = ["-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
    begun = seconds.with_suffix(".part")
    done = copy.run([*command, *copy.PYTEST, *tests], {SECONDS: str(begun)}, write_bytecode=True)
    if done.returncode != 0:
        raise FailingTests("\n".join(done.stdout.splitlines()[-30:]) + done.stderr[-2000:])
    begun.replace(seconds)


def _read(copy: CopiedTree, modules: Iterable[str], data: Path, seconds: Mapping[str, float]) -> Covering:
    measured = CoverageData(str(data))
    measured.read()
    files = measured.measured_files()  # in the copy of that time
    found: dict[str, Mapping[int, Sequence[str]]] = {}
    for module in modules:
        file = next((file for file in files if file.endswith(f"/{module}")), None)
        if file is not None:
            found[module] = measured.contexts_by_lineno(file)
    return Covering(found, seconds)
