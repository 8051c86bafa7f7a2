"""The page of the libraries: what each public name is called with, and its docstring."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from types import ModuleType

import attrs
from attrs import frozen

from pypoplar import FLOAT
from pypoplar.popnn import gru, lstm
from pypoplar.poputil.poplibs_names import WRITTEN, declarations, names_of

TITLE = "The calls of the libraries"
LIBRARIES = ("poputil", "popops", "poprand", "poplin", "popnn", "gcl")
ELEMENT_FUNCTIONS = "pypoplar.popops.elements.element_functions"  # of each operation three, with one docstring but for the place
OPERATIONS = "popops.expr"  # most of it has one line a name
FORMS = "py"  # not "python": blocks of that name are programs, which a test runs
WIDTH = 120
SECTION = re.compile(r"(?m)^(Parameters|Attributes|Returns|Yields|Raises|Notes|Examples)\n-+\n")
NOTES = {
    "popops": "Operations on elements, such as `add`, come in threes: the result is a new tensor, or in the place of the first "
    "operand (`addInPlace`), or in a tensor that is given (`addWithOutput`).",
}
VALUES = {
    "popops.MASKED_LABEL_CODE": "The label of a row that has no class: `encodeOneHot`, losses and accuracies leave it out.",
    "popops.UpdateComputationFunc": "What `scatter` combines old and new values with.",
    "poplin.DistributedNormReduceCallback": "What adds up statistics over replicas, as `distributedNormStatistics` calls it.",
}
CALLED = {  # types of the sources under the names that programs have for them
    "FieldChange": "ConvParams.InputTransform",
    "WindowChange": "ConvParams.OutputTransform",
    "Tensors": "list[Tensor]",
    "Tree": "Expr",
    "Trees": "list[Expr]",
}
MADE = {  # classes whose fields have defaults beside what they are made with
    "GruParams": lambda: gru.GruParams(FLOAT, 1, 1, [1, 1]),
    "LstmParams": lambda: lstm.LstmParams(FLOAT, 1, 1, [1, 1]),
}


@frozen
class Entry:
    """A heading of the page: one public name, or those of one operation on elements."""

    module: str  # below pypoplar: "popnn.lstm"
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        first, *others = self.names
        return ", ".join([f"{self.module}.{first}", *others])

    @property
    def members(self) -> list[object]:
        return [getattr(_import(self.module), name) for name in self.names]

    def __str__(self) -> str:
        code = "\n".join(line for name, member in zip(self.names, self.members, strict=True) for line in declared(name, member))
        parts = [f"### {self.title}", f"```{FORMS}\n{code}\n```" if code else "", self._text()]
        return "\n\n".join(part for part in parts if part)

    def _text(self) -> str:
        member = self.members[0]
        if (note := VALUES.get(self.title)) is not None:
            return note
        text = markdown(inspect.getdoc(member) or "")
        if isinstance(member, type) and issubclass(member, Enum):
            return f"{text}\n\nMembers: {', '.join(f'`{name}`' for name in member.__members__)}."
        if isinstance(member, type) and not issubclass(member, BaseException):
            return "\n\n".join([text, *_of_class(member)])
        return text


def modules() -> list[str]:
    """The libraries, each with the public modules in it behind it."""
    found = []
    for library in LIBRARIES:
        found += [library, *(f"{library}.{name}" for name in public_names(library) if _is_module(library, name))]
    return found


def public_names(module: str) -> list[str]:
    """What a module has for its users: its `__all__`, or what PopLibs has in it."""
    listed = getattr(_import(module), "__all__", None)
    names = listed or [name for name in vars(_import(module)) if name in names_of(module)]
    return sorted(names, key=lambda name: (name.lower(), name))


def entries(module: str) -> list[Entry]:
    """The headings of a module in the order of the alphabet."""
    names = [name for name in public_names(module) if not _is_module(module, name) and not name.startswith("_")]
    if module == OPERATIONS:
        names = [name for name in names if not _builds_operation(module, name)]
    found: dict[str, list[str]] = {}
    for name in names:
        member = getattr(_import(module), name)
        own = getattr(member, "__module__", "") == ELEMENT_FUNCTIONS
        found.setdefault(re.sub("(InPlace|WithOutput)$", "", name) if own else name, []).append(name)
    return [Entry(module, tuple(group)) for group in found.values()]


def declared(name: str, member: object) -> Iterator[str]:
    """The lines that say what a function, or the constructor of a class, is called with; a line for a value."""
    if isinstance(member, type) and issubclass(member, Enum | BaseException):
        return
    if not isinstance(member, type) and not inspect.isfunction(member):
        yield f"{name} = {_shown(member)}"
        return
    for signature in forms(member):
        yield from _wrapped(name, signature)


def forms(member: typing.Any) -> list[inspect.Signature]:
    """The forms that are declared for a function or constructor, as written."""
    called = inspect.unwrap(member.__init__ if isinstance(member, type) else member)
    overloads = [inspect.signature(form) for form in typing.get_overloads(called)] if inspect.isfunction(called) else []
    if not isinstance(member, type):
        return overloads or [inspect.signature(member)]
    own = [form.replace(parameters=[*form.parameters.values()][1:]) for form in overloads] or [inspect.signature(member)]
    return [form.replace(return_annotation=inspect.Signature.empty) for form in own]


def fields(member: type) -> dict[str, str]:
    """The fields of a class that its users know, with their types as text: what it is made with, and what PopLibs has."""
    if attrs.has(member):
        own = {field.alias or field.name: field.type for field in attrs.fields(member)}
    else:
        own = vars(member).get("__annotations__", {})
    known = {name for form in forms(member) for name in form.parameters} | _members_in_poplibs(member)
    return {name: _annotation(type) for name, type in own.items() if name in known}


def defaults(member: type) -> dict[str, object]:
    """The values that fields have unless a program sets them."""
    parameters = [parameter for form in forms(member) for parameter in form.parameters.values()]
    given = {one.name: one.default for one in parameters if one.default is not one.empty}
    needed = [one for one in forms(member)[0].parameters.values() if one.default is one.empty]
    make = MADE.get(member.__name__, None if needed else member)
    made = None if make is None else make()
    names = [name for name in fields(member) if hasattr(made, name) and (not needed or all(one.name != name for one in parameters))]
    found = given | {name: getattr(made, name) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, bool | int | float | str | list | Enum | None)}


def markdown(docstring: str) -> str:
    """What a docstring says before its sections, the options that it names, and its examples in fences."""
    text, *rest = SECTION.split(docstring)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    shown = [text.rstrip("\n"), _options(sections.get("Parameters", "")), sections.get("Examples", "")]
    parts = re.split(r"(?m)^( *>>> (?:.*\n?)+?)(?=\n|\Z)", "\n\n".join(part for part in shown if part))
    lines = [
        part.strip("\n") if number % 2 == 0 else f"```pycon\n{textwrap.dedent(part).strip()}\n```"
        for number, part in enumerate(parts)
    ]
    return "\n\n".join(line for line in lines if line)


def _options(parameters: str) -> str:
    """What a section of parameters says of options, but where it names another call that has them."""
    found = re.search(r"(?m)^options:\n((?:(?: .*)?(?:\n|\Z))+)", parameters)
    text = textwrap.dedent(found[1]).strip() if found else ""
    named = "``" in text and "see " not in text and not text.startswith(("As ", "Those "))
    return re.sub(r"^Known are\b ?|^", "Options: ", text, count=1).replace("Options: \n", "Options:\n") if named else ""


def _meaning(docstring: str) -> str:
    """What stands before the sections of a docstring, as one line."""
    return " ".join(SECTION.split(inspect.cleandoc(docstring))[0].split())


def page() -> str:
    """The whole page."""
    titles = [heading for module in modules() for heading in (module, *(entry.title for entry in entries(module)))]
    anchors = dict(zip(titles, _anchors([TITLE, *titles])[1:], strict=True))
    sections = [_section(module, anchors) for module in modules()]
    contents = "\n".join(f"- [{module}](#{anchors[module]}): {_summary(module)}" for module in modules())
    return f"""# {TITLE}

<!-- Made by docs/tables.py from the docstrings of the libraries; a test compares them. -->

Every public function and class of `pypoplar.poputil`, `popops`, `poprand`, `poplin`, `popnn` and `gcl`: the forms that it is called
in, then what its docstring says first, and its examples; `help(popops.add)` also shows arguments, result and errors one by one.
[The libraries](libraries.md) tells how they work and what they cost, [PopLibs' functions](poplibs.md) what PopLibs has besides.

In the forms, `Options` are a dict of option names and values or `None`, an `Operand` is a tensor or a number, a `list` may be any
sequence that has an order, and a `TileMapping` has a list of intervals for each tile.
`debugContext` is a name for what the call adds to the graph.

The tests run the examples. In them [`testing.run`](testing.md) gives a function a graph of 16 tiles and a variable for each
array; the function returns a program, and tensors to look at; both engines run it, and the result has what is in the tensors then.

{contents}

{chr(10).join(sections)}"""


def _section(module: str, anchors: dict[str, str]) -> str:
    own = entries(module)
    links = " · ".join(f"[{entry.names[0]}](#{anchors[entry.title]})" for entry in own)
    text = markdown(inspect.getdoc(_import(module)) or "")
    parts = [
        f"## {module}",
        text,
        NOTES.get(module, ""),
        links,
        *([_operations(module)] if module == OPERATIONS else []),
        *map(str, own),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _operations(module: str) -> str:
    """The builders of operations, a line each."""
    names = [name for name in public_names(module) if _builds_operation(module, name)]
    builders = [getattr(_import(module), name) for name in names]
    calls = [f"{name}({', '.join(inspect.signature(build).parameters)})" for name, build in zip(names, builders, strict=True)]
    lines = [f"| {_code(call)} | {_cell(_meaning(build.__doc__ or ''))} |" for call, build in zip(calls, builders, strict=True)]
    return "\n".join(["| operation | value |", "| --- | --- |", *lines])


def _builds_operation(module: str, name: str) -> bool:
    """Whether it stands for one operation: the modules's functions that are made of a table."""
    member = getattr(_import(module), name)
    return inspect.isfunction(member) and member.__code__.co_name == "build"


def _of_class(member: type) -> Iterator[str]:
    """The fields and methods of a class."""
    if own := fields(member):
        values = {name: _shown(value) for name, value in defaults(member).items()}
        rows = [f"| `{name}` | {_code(type)} | {_code(values.get(name, '').replace('...', ''))} |" for name, type in own.items()]
        yield "\n".join(["| field | type | default |", "| --- | --- | --- |", *rows])
    methods = list(_methods(member))
    if methods:
        yield "\n".join(f"- `{name}{text}`: {_meaning(document)}" for name, text, document in methods)


def _methods(member: type) -> Iterator[tuple[str, str, str]]:
    """Name, arguments and docstring of the methods and properties that PopLibs has."""
    for name, value in vars(member).items():
        if isinstance(value, type) and value.__doc__ and not name.startswith("_"):
            yield name, "", value.__doc__
        if isinstance(value, type) or name not in _members_in_poplibs(member):
            continue
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(function, property) and function.__doc__:
            yield name, "", function.__doc__
        elif inspect.isfunction(function) and function.__doc__:
            yield name, _arguments(inspect.signature(function), isinstance(value, staticmethod)), function.__doc__


def _arguments(signature: inspect.Signature, whole: bool) -> str:
    names = list(signature.parameters)
    return f"({', '.join(names if whole else names[1:])})"


def _wrapped(name: str, signature: inspect.Signature) -> list[str]:
    """A call as in a stub, on lines of at most `WIDTH`."""
    parameters = [_parameter(parameter) for parameter in signature.parameters.values()]
    result = "" if signature.return_annotation is signature.empty else f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parameters)}){result}"
    if len(line) <= WIDTH:
        return [line]
    unbroken = [f"{parameter},".replace(" ", "\xa0") for parameter in parameters]  # a parameter stays on one line
    inner = textwrap.wrap(
        " ".join(unbroken), WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [f"{name}(", *(part.replace("\xa0", " ") for part in inner), f"){result}"]


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    type = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_shown(parameter.default)}"
    return f"{stars}{parameter.name}{type}{default}"


def _annotation(type: object) -> str:
    text = type if isinstance(type, str) else type.__name__ if inspect.isclass(type) and not typing.get_args(type) else str(type)
    text = re.sub(r"\b(?:pypoplar|typing|collections\.abc)\.(?:\w+\.)*", "", text)
    text = re.sub(r"\b(?:Sequence|SequenceOf|Iterable)\[", "list[", text)
    return re.sub(r"\b(?:FieldChange|WindowChange|Tensors|Trees?)\b", lambda match: CALLED[match[0]], text)


def _shown(value: object) -> str:
    """A default as a program would write it."""
    if value is attrs.NOTHING:  # an enum of attrs': the field is to be set
        return "..."
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return _annotation(repr(value))


def _code(text: str) -> str:
    return _cell(f"`{text}`") if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _summary(module: str) -> str:
    return (_import(module).__doc__ or "").strip().splitlines()[0]


def _anchors(titles: Iterable[str]) -> list[str]:
    """Where headings are found on the page, as GitHub names them: those of equal words are numbered."""
    found: list[str] = []
    counts: dict[str, int] = {}
    for title in titles:
        plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = counts[plain] = counts.get(plain, -1) + 1
        found.append(f"{plain}-{number}" if number else plain)
    return found


def _members_in_poplibs(member: type) -> set[str]:
    """What PopLibs has in classes of this name."""
    return _members_of_classes().get(member.__name__, set())


@cache
def _members_of_classes() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for declaration in declarations():
        name, _, inner = declaration.name.partition(".")
        members = {text.strip(WRITTEN) for text in declaration.members} if declaration.kind == "fields" else {inner}
        found.setdefault(name, set()).update(members - {""})
    return found


def _is_module(module: str, name: str) -> bool:
    return isinstance(getattr(_import(module), name), ModuleType)


def _import(module: str) -> ModuleType:
    return importlib.import_module(f"pypoplar.{module}")
