"""What of PopLibs is there: its declarations held against the functions, classes and enums of pypoplar."""

from __future__ import annotations

import importlib
import inspect
import keyword
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from types import ModuleType

import attrs

from pypoplar.errors import MissingFeature
from pypoplar.poputil.poplibs_names import WRITTEN, Declaration, declarations, names_of

THERE, OTHER, ABSENT = "yes", "not this form", "not yet"


def status(declaration: Declaration) -> str:
    """Whether it is there, or how what is there differs."""
    try:
        owner: object = importlib.import_module(f"pypoplar.{declaration.module}")
        member = owner
        for name in declaration.name.split(".") if declaration.name else ():
            owner, member = member, getattr(member, _python(name))
    except (ModuleNotFoundError, MissingFeature, AttributeError):
        return ABSENT
    if isinstance(member, ModuleType) and declaration.kind != "values":  # a room of that name
        return ABSENT
    match declaration.kind:
        case "values":
            lacking = [name for name in declaration.members if not hasattr(member, name)]
        case "enum":
            lacking = _lacking_values(member, declaration)
        case "fields":
            lacking = [name for name in declaration.members if not _has_field(member, _python(name.strip(WRITTEN)))]
        case "class" if not declaration.arguments:  # a struct that is filled in C++
            return THERE
        case _:
            return _form(member, declaration, isinstance(owner, type))
    return THERE if not lacking else f"without {', '.join(lacking)}"


def beyond(module: str) -> list[str]:
    """The public names of a module that PopLibs does not have."""
    try:
        public = getattr(importlib.import_module(f"pypoplar.{module}"), "__all__", ())
    except (ModuleNotFoundError, MissingFeature):
        return []
    return [name for name in public if name not in names_of(module)]


def differences() -> dict[str, str]:
    """Declarations of what is there, but not in this form."""
    statuses = {f"{declaration.module}.{declaration}": status(declaration) for declaration in declarations()}
    return {name: text for name, text in statuses.items() if text not in (THERE, ABSENT)}


def modules() -> list[str]:
    return list(dict.fromkeys(declaration.module for declaration in declarations()))


def _lacking_values(member: object, declaration: Declaration) -> list[str]:
    if not (isinstance(member, type) and issubclass(member, Enum)):
        return list(declaration.members)
    return [name for name in declaration.members if _python(name) not in member.__members__]


def _has_field(member: object, name: str) -> bool:
    if isinstance(member, type) and attrs.has(member):
        return hasattr(member, name) or name in [field.alias or field.name for field in attrs.fields(member)]
    return hasattr(member, name) or name in inspect.signature(typing.cast(Callable[..., object], member)).parameters


def _form(member: object, declaration: Declaration, bound: bool) -> str:
    """Whether a call with these arguments, by position, gives each to the parameter of its name, or without which."""
    signatures = list(_signatures(member, bound))
    names = [argument.partition("=")[0] for argument in declaration.arguments]
    needed = [argument for argument in declaration.arguments if "=" not in argument]
    for signature in signatures:
        lacking = [name for name in names if _plain(name) not in map(_plain, signature.parameters)]
        optional = [name for name in lacking if name not in needed]
        if any(name in needed and not name.startswith(WRITTEN) for name in lacking):
            continue
        if all(_binds(signature, [name for name in form if name not in lacking]) for form in (names, needed)):
            return THERE if not optional else f"without {', '.join(optional)}"
    return OTHER


def _plain(name: str) -> str:
    return name.strip(WRITTEN).rstrip("_")


def _binds(signature: inspect.Signature, names: list[str]) -> bool:
    try:
        bound = signature.bind(*names)
    except TypeError:
        return False
    return all(_plain(name) == _plain(str(value)) for name, value in bound.arguments.items())


def _signatures(member: object, bound: bool) -> Iterator[inspect.Signature]:
    """The signatures of a function and of its overloads, of a class's constructor; methods without self."""
    call = member.__init__ if isinstance(member, type) else member  # type: ignore[misc]
    own = inspect.signature(typing.cast(Callable[..., object], member))
    overloads = map(inspect.signature, typing.get_overloads(typing.cast(Callable[..., object], inspect.unwrap(call))))
    drop = isinstance(member, type)
    yield _without_self(own) if bound and not drop else own
    yield from (_without_self(signature) if drop or bound else signature for signature in overloads)


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def _python(name: str) -> str:
    """A name of C++ in Python: keywords take an underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name
