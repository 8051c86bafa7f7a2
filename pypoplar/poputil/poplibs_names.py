"""What PopLibs has: the names, arguments and values of its public headers, `poplibs_names.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

NAMES = Path(__file__).with_name("poplibs_names.toml")
WRITTEN = "&"  # before an argument that the call writes

_LINE = re.compile(r"(?:(class|method|enum|fields|values) ?)?([\w.]*)(?:\((.*)\)|: (.*))")


@frozen
class Declaration:
    """A line of the file: an overload of a function, constructor or method, or the members of a class, an enum, a module.

    `kind` is "function", "class", "method", "enum", "fields" or "values". `arguments` are as they are written, with their
    defaults; `members` are the names after the colon.
    """

    module: str  # below pypoplar: "popops.expr"
    header: str
    kind: str
    name: str
    arguments: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"({', '.join(self.arguments)})" if self.kind in ("function", "class", "method") else f": {', '.join(self.members)}"
        return f"{self.name}{text}"

    @property
    def names(self) -> tuple[str, ...]:
        """The members of the module that it tells of."""
        return self.members if self.kind == "values" else (self.name.partition(".")[0],)


def declarations() -> Iterator[Declaration]:
    """All lines of the file, in its order."""
    for module, headers in tomllib.loads(NAMES.read_text(encoding="utf-8")).items():
        for header, lines in headers.items():
            yield from (_declaration(module, header, line) for line in lines)


@cache
def names_of(module: str) -> frozenset[str]:
    """The names that PopLibs has in ``pypoplar.<module>``, its modules among them."""
    own = [name for declaration in declarations() if declaration.module == module for name in declaration.names]
    below = [other.module[len(module) + 1 :].partition(".")[0] for other in declarations() if other.module.startswith(f"{module}.")]
    return frozenset(own + below)


def _declaration(module: str, header: str, line: str) -> Declaration:
    match = _LINE.fullmatch(line)
    assert match, line
    kind, name, arguments, members = match.groups()
    return Declaration(module, header, kind or "function", name, _listed(arguments), _listed(members))


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()
