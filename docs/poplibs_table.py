"""What of PopLibs is there: its declarations held against the functions, classes and enums of pypoplar."""

from __future__ import annotations

import importlib
import inspect
import keyword
import typing
from collections.abc import Callable, Iterator
from enum import Enum

import attrs

from pypoplar.errors import MissingFeature
from pypoplar.poputil.poplibs_names import WRITTEN, Declaration, declarations, names_of

THERE, ABSENT = "yes", "not yet"


def status(declaration: Declaration) -> str:
    """Whether it is there, or how what is there differs."""
    try:
        owner: object = importlib.import_module(f"pypoplar.{declaration.module}")
        member = owner
        for name in declaration.name.split(".") if declaration.name else ():
            owner, member = member, getattr(member, _python(name))
    except (ModuleNotFoundError, MissingFeature, AttributeError):
        return ABSENT
    match declaration.kind:
        case "values":
            lacking = [name for name in declaration.members if not hasattr(member, name)]
        case "enum":
            lacking = _lacking_values(member, declaration)
        case "fields":
            lacking = [name for name in declaration.members if not _has_field(member, _python(name.strip(WRITTEN)))]
        case _:
            return THERE if _accepts(member, declaration, isinstance(owner, type)) else _shown(member)
    return THERE if not lacking else f"without {', '.join(lacking)}"


def beyond(module: str) -> list[str]:
    """The public names of a module that PopLibs does not have."""
    try:
        public = getattr(importlib.import_module(f"pypoplar.{module}"), "__all__", ())
    except (ModuleNotFoundError, MissingFeature):
        return []
    return [name for name in public if name not in names_of(module)]


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


def _accepts(member: object, declaration: Declaration, bound: bool) -> bool:
    """Whether a call with these arguments, by position, gives each to the parameter of its name; with defaults left out too."""
    signatures = list(_signatures(member, bound))
    given = [argument.strip(WRITTEN) for argument in declaration.arguments]
    needed = [argument for argument in given if "=" not in argument]
    unwritten = [argument.partition("=")[0] for argument in declaration.arguments if not argument.startswith(WRITTEN)]
    forms = [[argument.partition("=")[0] for argument in given], unwritten]
    return any(_binds(signature, form) for signature in signatures for form in forms) and any(
        _binds(signature, form) for signature in signatures for form in ([*needed], [name for name in needed if name in unwritten])
    )


def _binds(signature: inspect.Signature, names: list[str]) -> bool:
    try:
        bound = signature.bind(*names)
    except TypeError:
        return False
    return all(name.rstrip("_") == str(value).rstrip("_") for name, value in bound.arguments.items())


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


def _shown(member: object) -> str:
    """The argument lists that there are, without types."""
    return " or ".join(dict.fromkeys(_list(signature) for signature in _signatures(member, bound=False)))


def _list(signature: inspect.Signature) -> str:
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return f"`{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}`"


def _python(name: str) -> str:
    """A name of C++ in Python: keywords take an underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name
