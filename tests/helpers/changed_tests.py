"""Which test files a change needs: those of the rooms that it touches, those of rooms that import them, and who uses what.

A room is imported by its own package first: `compiler.flattening` is handed on by `compiler`, which the engine imports. So the
rooms of the same package that stand on a touched one are taken with it, and then those of other packages that import any of these.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath

from attrs import frozen
from floors import FLOOR, LATE, House, room, statements

TESTED_IN = {  # where the name of a room is not that of a folder or of a module of tests
    **dict.fromkeys(("poputil", "popops", "poplin", "poprand", "popnn", "gcl"), ("libraries",)),
    **dict.fromkeys(("cli", "__main__", "resources", "documents", "watchers"), ("command",)),
    **dict.fromkeys(("pva", "profile"), ("test_pva.py", "test_typing.py", "report")),
    **dict.fromkeys(("target", "presets"), ("test_target_presets.py", "test_target_devices.py", "model")),
    **dict.fromkeys(("types", "host_values"), ("graph",)),
    "braces": ("test_sets.py",),
    "called_names": ("report/naming",),
    "host_memory": ("graph/test_host_memory.py",),
    "device": ("test_target_devices.py", "engine"),
    "errors": ("test_newcomer_mistakes.py", "documents"),
    "extras": ("documents/test_readme.py",),
    "options": ("test_options_parse.py",),
    "ipu": ("codelet",),
    "codelet.cpp_tree": ("codelet/cpp",),
    "codelet.listing": ("command/test_listing.py",),
    "notebook": ("report/test_notebook_html.py",),
    "": ("test_import.py",),
}
ON_THE_WHOLE = (  # what any change of pypoplar may break, seen in half a minute
    "tests/test_rooms.py",
    "tests/test_import.py",
    "tests/documents/test_tables.py",
    "tests/documents/test_reference.py",
    "tests/documents/test_room_drawing.py",
)
EVERYTHING = ("pyproject.toml", "tests/conftest.py")
READ_BY = {  # further tests of what is read and not imported; those that name it in their source are found
    "docs": ("tests/documents", "tests/site"),
    "tutorials": ("tests/tutorials", "tests/documents"),
    "README.md": ("tests/documents", "tests/site"),
}
READ = (*READ_BY, "examples", ".ci", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff")
READ_BY_NOBODY = (".gitignore", "LICENSE")


@frozen
class Selection:
    """Test files from the project's root, or all of them with the reason."""

    files: frozenset[str] = frozenset()
    all_because: str = ""
    rooms: tuple[str, ...] = ()  # that are touched
    importing: tuple[str, ...] = ()  # rooms that are not
    others: tuple[str, ...] = ()  # changed files that are in no room


@frozen
class TestFile:
    """A module of tests, helpers or benchmarks: the names that it imports, and the beginnings of paths in its texts."""

    path: str
    imported: frozenset[str]
    named: frozenset[str]

    __test__ = False

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/") and PurePosixPath(self.path).name.startswith("test_")

    @property
    def is_conftest(self) -> bool:
        return PurePosixPath(self.path).name == "conftest.py"


class ChangedTests:
    """What the change of some files needs, in the project at a root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.house = House(root / "pypoplar")

    def selection(self, changed: Iterable[str]) -> Selection:
        """The test files that a change of some files needs; paths are from the root."""
        rooms: set[str] = set()
        files: set[str] = set()
        others: list[str] = []
        for path in changed:
            touched = self.room_of(path)
            if touched is not None:
                rooms.add(touched)
                files |= self.users(path)
                continue
            found = self.files_of(path)
            if found is None:
                why = "concerns all tests" if path in EVERYTHING else "is in no room and in no folder that is known"
                return Selection(frozenset(self.tests), f"{path} {why}")
            files |= found
            others.append(path)
        importing = self.importing(rooms)
        if rooms:
            files.update(*(self.tests_of(name) or self.at([self.folder(name)]) for name in rooms))
            files.update(*(self.tests_of(name) for name in importing), self.at(ON_THE_WHOLE))
        return Selection(frozenset(files), "", tuple(sorted(rooms)), tuple(sorted(importing)), tuple(others))

    def room_of(self, path: str) -> str | None:
        """The room that a file belongs to; device code is of its library."""
        first, *rest = PurePosixPath(path).with_suffix("").parts
        if first == "codelets" and rest:
            return room(rest[0].partition("_")[0])
        if first == "pypoplar" and rest:
            return "" if rest == ["__init__"] else room(".".join(rest))
        return None

    def files_of(self, path: str) -> set[str] | None:
        """The test files that a change of a file outside of the rooms needs; None for all."""
        first, *rest = PurePosixPath(path).parts
        if path in EVERYTHING:
            return None
        if first == "tests" and rest:
            folder = PurePosixPath(path).parent.as_posix()
            if PurePosixPath(path).name.startswith("test_") and path.endswith(".py"):
                return self.at([path])
            if folder == "tests/helpers":
                return self.users(path)
            return self.at([folder]) | self.users(path)
        if first == "benchmarks":
            return self.users(path)
        if first in READ:
            return self.at(READ_BY.get(first, ())) | self.users(path, naming=first)
        return set() if path in READ_BY_NOBODY else None

    def importing(self, rooms: set[str]) -> set[str]:
        """The other rooms of the same packages that stand on some rooms, and the rooms that import any of these."""
        below: dict[str, set[str]] = {name: set() for name in FLOOR}
        for module, target, typing_only in self.house.arrows:
            upper, lower = room(module) or "", room(target) or ""
            if upper != lower and not typing_only and (module, target) not in LATE:
                below[lower].add(upper)
        package, waiting = set(rooms), list(rooms)
        while waiting:
            lower = waiting.pop()
            inner = {upper for upper in below[lower] if upper.partition(".")[0] == lower.partition(".")[0]} - package
            package |= inner
            waiting += inner
        return package.union(*(below[name] for name in package)) - rooms

    def tests_of(self, name: str) -> set[str]:
        """The tests of a room: of its folder without the folders of rooms within, or where the table has them."""
        known = self.places(name)
        if known:
            return self.at(known)
        folder = self.folder(name)
        within = {f"tests/{other.replace('.', '/')}" for other in FLOOR}
        own = self.at([folder])
        return {path for path in own if not any(path.startswith(f"{other}/") for other in within if other.startswith(f"{folder}/"))}

    def places(self, name: str) -> list[str]:
        """Where the table or a module of tests has a room, or the rooms that it is one of."""
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            beginning = ".".join(parts[:end])
            if beginning in TESTED_IN:
                return [f"tests/{place}" for place in TESTED_IN[beginning]]
            module = f"tests/test_{beginning.replace('.', '_')}.py"
            if module in self.tests:
                return [module]
        return []

    def folder(self, name: str) -> str:
        """The folder of a room's tests, or of the rooms that it is one of."""
        parts = name.split(".")
        folders = ("tests/" + "/".join(parts[:end]) for end in range(len(parts), 0, -1))
        return next((folder for folder in folders if (self.root / folder).is_dir()), "")

    def at(self, places: Iterable[str]) -> set[str]:
        """The test files that are there, or in a folder that is."""
        wanted = tuple(places)
        return {path for path in self.tests if any(path == place or path.startswith(f"{place}/") for place in wanted)}

    def users(self, path: str, naming: str = "") -> set[str]:
        """The test files that import a file, or have its folder in a text, themselves or by way of a helper or a conftest."""
        found: set[str] = set()
        named = [one for one in self.sources if naming in one.named] if naming else []
        waiting = list({*self.importers[name_of(path)], *named})
        seen = set(waiting)
        while waiting:
            one = waiting.pop()
            if one.is_test:
                found.add(one.path)
            elif one.is_conftest:
                found |= self.at([PurePosixPath(one.path).parent.as_posix()])
            else:
                further = self.importers[name_of(one.path)] - seen
                seen |= further
                waiting += further
        return found

    @cached_property
    def importers(self) -> defaultdict[str, set[TestFile]]:
        """The modules of tests, helpers and benchmarks that import a name."""
        found: defaultdict[str, set[TestFile]] = defaultdict(set)
        for one in self.sources:
            for name in one.imported:
                found[name].add(one)
        return found

    @cached_property
    def tests(self) -> list[str]:
        """All test files, from the root."""
        return [one.path for one in self.sources if one.is_test]

    @cached_property
    def sources(self) -> list[TestFile]:
        """The modules of tests, helpers and benchmarks."""
        paths = chain.from_iterable(sorted((self.root / folder).rglob("*.py")) for folder in ("tests", "benchmarks"))
        return [_read(path, self.root) for path in paths]


def name_of(path: str) -> str:
    """The name by which a file is imported; helpers lie on Python's path."""
    plain = PurePosixPath(path).with_suffix("")
    parts = plain.parts[2:] if path.startswith("tests/helpers/") else plain.parts
    return ".".join(parts).removesuffix(".__init__")


def _read(path: Path, root: Path) -> TestFile:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    named = set(_named(tree)) & set(READ) if any(name in text for name in READ) else set()
    return TestFile(path.relative_to(root).as_posix(), frozenset(_imported(tree)), frozenset(named))


def _named(tree: ast.AST) -> Iterator[str]:
    """The first folders of what may be paths among the texts of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield node.value.partition("/")[0]


def _imported(tree: ast.AST) -> Iterator[str]:
    for node, _ in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
