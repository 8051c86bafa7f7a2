"""Outputs that a codelet promises to write in full: the class keyword ``writes_all="out"``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypoplar.codelet.language.declaration import Field, declared_of, refused_keyword, user_classes
from pypoplar.codelet.language.fields import UNSAID, Vertex
from pypoplar.errors import CodeletError
from pypoplar.spelling import nearest_or_all

KEYWORD = "writes_all"


def promised_fields(cls: type[Vertex], fields: Sequence[Field]) -> tuple[str, ...]:
    """The Outputs, in their order, of which the class and its bases promise to write all elements.

    A promise about anything else is a `CodeletError` at the class that makes it.
    """
    promised = {name for base in user_classes(cls) for name in _promises(base, fields)}
    return tuple(field.name for field in fields if field.name in promised)


def _promises(base: type, fields: Sequence[Field]) -> Iterator[str]:
    """The names of the Outputs that a class itself promises to write in full."""
    if KEYWORD in vars(base):
        raise _refused(
            base, f"{KEYWORD} is a keyword of the class, not an attribute: write class {base.__name__}(Vertex, {KEYWORD}=...)"
        )
    given = declared_of(base).writes_all
    if given is UNSAID:
        return
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise _refused(base, f'{KEYWORD} names Outputs: {KEYWORD}="out", or a list of names; got {given!r}')
    for name in names:
        field = next((field for field in fields if name in (field.name, field.attribute)), None)
        if field is None:
            raise _refused(base, f"{KEYWORD}: there is no field {name!r}{nearest_or_all(name, (field.name for field in fields))}")
        if field.access != "output":
            kept = "a plain field" if field.access == "state" else f"an {'Input' if field.access == 'input' else 'InOut'}"
            raise _refused(base, f"{KEYWORD}: {name!r} is {kept}; only of an Output nothing is kept for the vertex")
        if field.record is not None:
            raise _refused(base, f"{KEYWORD}: {name!r} holds records, of which members are written one by one; it is for numbers")
        if names.count(name) > 1:
            raise _refused(base, f"{KEYWORD} names {name!r} twice")
        yield field.name


def _refused(base: type, message: str) -> CodeletError:
    return refused_keyword(base, base, KEYWORD, message)
