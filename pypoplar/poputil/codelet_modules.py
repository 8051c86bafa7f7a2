"""The libraries' files of device code, whose codelets are collected once for all graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from operator import is_
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import frozen

from pypoplar import resources
from pypoplar.codelet.language.codelet_file import module_of_file
from pypoplar.codelet.language.declaration import user_classes
from pypoplar.codelet.language.fields import Vertex
from pypoplar.codelet.operations.table import revision
from pypoplar.codelet.registry import Collected
from pypoplar.graph.graph import Graph


@cache
def codelet_module(file: str) -> ModuleType:
    """The module of a file of codelets, which Python runs once for all graphs."""
    return module_of_file(Path(resources.codelets(file)))


def add_codelets_of(graph: Graph, files: Iterable[str]) -> None:
    """Add the codelets of some of the libraries' files."""
    found: list[Any] = [_collected(codelet_module(file)) for file in files]  # not a kind of source that users have
    graph.addCodelets(found)


@frozen(eq=False)
class _Library:
    """The codelets of a module, and what they were made of: constants and helper functions that they name, members of classes.

    That nothing there can change in itself, a list say, is tested; what a function of another module names is taken to stay.
    """

    collected: Collected
    revision: int  # of the table of operations
    spaces: tuple[Mapping[str, object], ...]  # the names as they are, of the module and of the classes that make up its codelets
    contents: tuple[Iterable[object], ...]  # what they mean, in the same way
    names: tuple[str, ...]  # as they were, one after the other
    values: tuple[object, ...]

    @staticmethod
    def of(module: ModuleType) -> _Library:
        collected = Collected.of(module)
        classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Vertex)]
        owners = dict.fromkeys(base for cls in classes for base in user_classes(cls))
        spaces = (vars(module), *(vars(owner) for owner in owners))
        contents = tuple(space.values() for space in spaces)
        return _Library(collected, revision(), spaces, contents, (*chain(*spaces),), (*chain(*contents),))

    def holds(self) -> bool:
        """Whether the codelets would be the same if they were collected now."""
        return (
            self.revision == revision()
            and (*chain(*self.spaces),) == self.names
            and all(map(is_, chain(*self.contents), self.values))
        )


_LIBRARIES: dict[ModuleType, _Library] = {}


def _collected(module: ModuleType) -> Collected:
    library = _LIBRARIES.get(module)
    if library is None or not library.holds():
        library = _LIBRARIES[module] = _Library.of(module)
    return library.collected
