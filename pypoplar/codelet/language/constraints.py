"""The fields of a codelet that may not overlap: the class keyword ``constraint="elem(*x) != elem(*y)"``, in Poplar an attribute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pypoplar.codelet.language.annotations import refused_field
from pypoplar.codelet.language.declaration import Field, declared_of, refused_keyword, user_classes
from pypoplar.codelet.language.fields import UNSAID, Vertex
from pypoplar.errors import CodeletError
from pypoplar.spelling import nearest_or_all

_TERM = r"\s*(\w+)\s*\(\s*(\**)\s*(\w+)\s*\)\s*"
_CONSTRAINT = re.compile(f"{_TERM}([!=<>]=?){_TERM}")
_FUNCTION = re.compile(r"\b(elem|region)\s*\(")
_ATTRIBUTES = ("constraint", "constraints")
_SPELLING = 'write "elem(*x) != elem(*y)", of two fields; join several by &&, or give a list'


class _NoDemand(Exception):
    """A constraint that demands nothing; the text says why."""


def distinct_fields(cls: type[Vertex], fields: Sequence[Field]) -> tuple[tuple[str, str], ...]:
    """The pairs of fields, by name and in their order, that the class and its bases demand to be apart.

    A constraint that is none, or says nothing new in its class, is a `CodeletError` at the class that has it.
    """
    pairs: set[tuple[int, int]] = set()
    for base in user_classes(cls):
        _refuse_attribute(base)
        own: set[tuple[int, int]] = set()
        for text in _texts(cls, base):
            for part in text.split("&&"):
                try:
                    pair = _pair(part, fields)
                    if pair in own:
                        names = " and ".join(repr(fields[position].name) for position in pair)
                        raise _NoDemand(f"{names} are kept apart twice: leave one of the two out")
                    own.add(pair)
                except _NoDemand as reason:
                    raise _refused(cls, base, f"constraint {text!r}{_origin(cls, base)}: {reason}") from None
        pairs |= own
    return tuple((fields[first].name, fields[second].name) for first, second in sorted(pairs))


def demanded_apart(text: str, fields: Sequence[Field]) -> list[tuple[str, str]]:
    """The pairs of fields that a constraint demands to be apart, by name; `ValueError` says what is wrong with it."""
    try:
        pairs = [_pair(part, fields) for part in text.split("&&")]
    except _NoDemand as reason:
        raise ValueError(str(reason)) from None
    return [(fields[first].name, fields[second].name) for first, second in pairs]


def constraint_of(first: Field, second: Field) -> str:
    """The constraint that keeps two fields apart, as it is written."""
    return f"elem({_STARS[first.form]}{first.name}) != elem({_STARS[second.form]}{second.name})"


_STARS = {"vector": "*", "list": "**"}
_FORMS = {"vector": "Vector", "list": "VectorList"}


def _texts(cls: type, base: type) -> Iterator[str]:
    """The constraints that a class itself has."""
    constraint = declared_of(base).constraint
    if constraint is UNSAID:
        return
    texts = [constraint] if isinstance(constraint, str) else constraint
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        origin = _origin(cls, base)
        raise _refused(cls, base, f"a constraint is a string, or a list of strings; got {constraint!r}{origin}: {_SPELLING}")
    if not texts:
        raise _refused(cls, base, f"constraint {constraint!r}{_origin(cls, base)} demands nothing: leave it out, or {_SPELLING}")
    yield from texts


def _refuse_attribute(base: type) -> None:
    """Refuse constraints that stand in the class, where nobody reads them."""
    for name in _ATTRIBUTES:
        value = vars(base).get(name)
        texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        if any(isinstance(text, str) and _FUNCTION.search(text) for text in texts):
            remedy = f"write class {base.__name__}(Vertex, constraint={value!r})"
            raise refused_field(base, name, f"a constraint is a keyword of the class, not an attribute: {remedy}", at_value=True)


def _pair(text: str, fields: Sequence[Field]) -> tuple[int, int]:
    """The positions of the two fields that a constraint keeps apart."""
    constraint = _CONSTRAINT.fullmatch(text)
    if constraint is None:
        raise _NoDemand(_SPELLING)
    function, stars, name, operator, other_function, other_stars, other_name = constraint.groups()
    for named in (function, other_function):
        if named == "region":
            raise _NoDemand("regions of a tile's memory are not modelled, so that no layout could meet it; leave it out")
        if named != "elem":
            raise _NoDemand(f"nothing is called {named!r}: {_SPELLING}")
    if operator != "!=":
        raise _NoDemand(f"fields can be demanded to be apart, by !=, not {operator}")
    pair = sorted((_position(stars, name, fields), _position(other_stars, other_name, fields)))
    if pair[0] == pair[1]:
        raise _NoDemand(f"field {name!r} cannot be kept apart from itself")
    return pair[0], pair[1]


def _position(stars: str, name: str, fields: Sequence[Field]) -> int:
    """The position of the vector or list of that name, in the graph or in the class, with as many stars as it takes."""
    named = [position for position, field in enumerate(fields) if name in (field.name, field.attribute)]
    if not named:
        raise _NoDemand(f"there is no field {name!r}{nearest_or_all(name, (field.name for field in fields))}")
    field = fields[named[0]]
    if field.access == "state":
        raise _NoDemand(f"{name!r} is a plain field, which is nobody else's memory; constraints are about edges")
    if field.form == "scalar":
        raise _NoDemand(f"{name!r} is one element; constraints are about a Vector or a VectorList")
    if stars != _STARS[field.form]:
        raise _NoDemand(f"{name!r} is a {_FORMS[field.form]}, whose elements are written elem({_STARS[field.form]}{name})")
    return named[0]


def _origin(cls: type, base: type) -> str:
    """Where a constraint comes from, if not from the class itself."""
    return "" if base is cls else f" of its base {base.__name__}"


def _refused(cls: type, base: type, message: str) -> CodeletError:
    return refused_keyword(cls, base, "constraint", message)
