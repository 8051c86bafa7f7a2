"""Codelets of C++ files written down as a Python file, for people who move over: the text that they run as, with its classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cpp.cpp_codelets import codelets_of
from pypoplar.codelet.cpp_tree.translation_unit import flags_of, read_file
from pypoplar.codelet.language.constant_tables import ConstantTable
from pypoplar.codelet.language.declaration import Field, split_name
from pypoplar.codelet.language.source import FunctionSource
from pypoplar.errors import CodeletError
from pypoplar.types import BY_SPELLING, ElementType

_BASES = {"vertex": "Vertex", "multi": "MultiVertex", "supervisor": "SupervisorVertex"}
_ACCESS = {"input": "Input", "output": "Output", "inout": "InOut"}


@frozen
class Ported:
    """The text of a Python file, and what has no form in it."""

    text: str
    refusals: tuple[CodeletError, ...]


def port(files: Sequence[Path], flags: str = "") -> Ported:
    """The codelets of some files as one file of Python."""
    found = [codelets_of(read_file(file, flags_of(flags)), keep_going=True) for file in files]
    module = _Module()
    for file in found:
        for group in _groups(file.codelets):
            module.add(group)
    refusals = [refusal for file in found for refusal in file.refusals]
    by_name: dict[str, list[CodeletError]] = {}
    for refusal in refusals:
        by_name.setdefault(str(refusal.msg).partition(": ")[0], []).append(refusal)
    for name, reasons in by_name.items():
        module.refuse(name, reasons)
    return Ported(module.text([str(file) for file in files]), tuple(refusals))


def check_files(files: Sequence[Path], flags: str = "") -> Ported:
    """What files have that has no form here, line by line, and the codelets that run."""
    lines: list[str] = []
    refusals: list[CodeletError] = []
    for file in files:
        try:
            found = codelets_of(read_file(file, flags_of(flags)), keep_going=True)
        except CodeletError as problem:
            lines.append(str(problem))
            refusals.append(problem)
            continue
        lines += [str(refusal) for refusal in found.refusals]
        refusals += found.refusals
        lines += [f"{file}: runs: {codelet.name}" for codelet in found.codelets]
        made = {split_name(name)[0] for name in found.instances}
        for name, place in found.templates.items():
            if name not in made:
                hint = f"write template class {name}<float>; or name one in addVertex"
                lines.append(f"{place.file}:{place.line}: {name} is a template without an instance: {hint}")
    return Ported("".join(f"{line}\n" for line in lines), tuple(refusals))


def _groups(codelets: Sequence[Codelet]) -> list[list[Codelet]]:
    """Codelets that one class stands for: instances of a template for one type that are alike in all but it."""
    groups: list[list[Codelet]] = []
    for codelet in codelets:
        last = groups[-1] if groups else []
        if (
            last
            and _alike(last[0], codelet)
            and (len(last) == 1 or _typed_fields(last[0], last[1]) == _typed_fields(last[0], codelet))
        ):
            last.append(codelet)
        else:
            groups.append([codelet])
    return groups


def _type_of(codelet: Codelet) -> ElementType | None:
    """The type that an instance of a template is for, if that is all that it has."""
    _, arguments = split_name(codelet.name)
    return BY_SPELLING.get(arguments[0]) if len(arguments) == 1 else None


def _alike(first: Codelet, second: Codelet) -> bool:
    if split_name(first.name)[0] != split_name(second.name)[0] or _type_of(first) is None or _type_of(second) is None:
        return False
    same = [function.listing.text for function in first.source.functions] == [
        function.listing.text for function in second.source.functions
    ]
    return same and first.source.tables == second.source.tables and _typed_fields(first, second) is not None


def _typed_fields(first: Codelet, second: Codelet) -> tuple[str, ...] | None:
    """The fields of two instances whose type is the template's; None if they differ in more."""
    found = []
    for one, other in zip(first.fields, second.fields, strict=True):
        if (one.name, one.access, one.form, one.default, one.aligned) != (
            other.name,
            other.access,
            other.form,
            other.default,
            other.aligned,
        ):
            return None
        if one.type is _type_of(first) and other.type is _type_of(second):
            found.append(one.name)
        elif one.type is not other.type:
            return None
    return tuple(found)


class _Module:
    """A Python file while it is written."""

    def __init__(self) -> None:
        self.imported: set[str] = set()
        self.modules: set[str] = set()
        self.functions: dict[str, str] = {}  # text by name
        self.tables: dict[str, ConstantTable] = {}
        self.classes: list[str] = []
        self.variables: dict[str, str] = {}

    def add(self, group: list[Codelet]) -> None:
        codelet = group[0]
        names = self._names(codelet)
        helpers = codelet.source.functions[1:]
        for function in helpers:
            self.functions[names[function.name]] = _renamed(function.listing.text, names)
        self._note(codelet.source.functions)
        self.classes.append(self._class(group, names))

    def refuse(self, name: str, reasons: list[CodeletError]) -> None:
        """What stands for a codelet that has no form."""
        identifier = re.sub(r"\W+", "_", name).strip("_") or "codelet"
        comments = [f"# {reason.filename}:{reason.lineno}: {reason.msg}" for reason in reasons]
        first = f"{reasons[0].filename}:{reasons[0].lineno}: {reasons[0].msg}"
        self.classes.append("\n".join([*comments, f"def {identifier}():", f"    raise NotImplementedError({first!r})", ""]))

    def _names(self, codelet: Codelet) -> dict[str, str]:
        """The names that the helper functions and tables of a codelet have in the file, where others may have them, too."""
        names: dict[str, str] = {}
        for function in codelet.source.functions[1:]:
            names[function.name] = self._free(
                function.name, lambda known, text=function.listing.text: self.functions.get(known) == text
            )
        for function in codelet.source.functions:
            for name, meaning in function.names.items():
                if meaning.sort == "table":
                    table = codelet.source.tables[int(meaning.value)]
                    names[name] = self._free(name, lambda known, table=table: self.tables.get(known) == table)
                    self.tables[names[name]] = table
        return names

    def _free(self, name: str, is_same: object) -> str:
        free, count = name, 1
        while (free in self.functions or free in self.tables) and not is_same(free):  # type: ignore[operator]
            count += 1
            free = f"{name}_{count}"
        return free

    def _note(self, functions: Sequence[FunctionSource]) -> None:
        for function in functions:
            for name, meaning in function.names.items():
                if meaning.sort == "type":
                    self.imported.add(name)
                elif name.partition(".")[0] in ("math", "ipu"):
                    self.modules.add(name.partition(".")[0])

    def _class(self, group: list[Codelet], names: dict[str, str]) -> str:
        codelet = group[0]
        base, arguments = split_name(codelet.name)
        identifier = re.sub(r"\W+", "_", base.rpartition("::")[2] if len(group) > 1 else codelet.name.rpartition("::")[2]).strip(
            "_"
        )
        while any(text.startswith(f"class {identifier}(") for text in self.classes):
            identifier += "_"
        bases, name = [_BASES[codelet.kind]], base if len(group) > 1 else codelet.name
        self.imported.add(bases[0])
        variable: str | None = None
        typed: tuple[str, ...] = ()
        if len(group) > 1:
            typed = _typed_fields(group[0], group[1]) or ()
            types = [type.__name__ for one in group if (type := _type_of(one)) is not None]
            self.imported.update(types)
            variable = self._variable(", ".join(types))
            bases.append(f"Generic[{variable}]")
        if name != identifier:
            bases.append(f'name="{name}"')
        lines = [f"class {identifier}({', '.join(bases)}):"]
        lines += [f"    {self._field(field, variable if field.name in typed else None)}" for field in codelet.fields]
        text = _renamed(codelet.source.functions[0].listing.text, names)
        lines += (
            ["", *(f"    {line}" if line else "" for line in text.splitlines())]
            if codelet.fields
            else [f"    {line}" for line in text.splitlines()]
        )
        del arguments
        return "\n".join(lines) + "\n"

    def _variable(self, types: str) -> str:
        for name, known in self.variables.items():
            if known == types:
                return name
        name = "T" if not self.variables else f"T{len(self.variables) + 1}"
        self.variables[name] = types
        return name

    def _field(self, field: Field, variable: str | None) -> str:
        element = variable or field.type.__name__
        if variable is None:
            self.imported.add(element)
        content = element
        if field.form != "scalar":
            container = "Vector" if field.form == "vector" else "VectorList"
            self.imported.add(container)
            content = f"{container}[{element}]"
        if field.aligned:
            self.imported.add("Aligned")
            content = f"Annotated[{content}, Aligned({field.aligned})]"
        if field.access != "state":
            self.imported.add(_ACCESS[field.access])
            content = f"{_ACCESS[field.access]}[{content}]"
        default = f" = {field.default!r}" if field.default is not None else ""
        return f"{field.attribute}: {content}{default}"

    def text(self, files: list[str]) -> str:
        parts = [f'"""Codelets of {", ".join(Path(file).name for file in files)}, written by pypoplar port."""\n']
        typing = sorted(
            {*(["Generic", "TypeVar"] if self.variables else []), *(["Annotated"] if "Aligned" in self.imported else [])}
        )
        standard = ["import math"] if "math" in self.modules else []
        standard += [f"from typing import {', '.join(typing)}"] if typing else []
        names = sorted(self.imported, key=lambda name: (not name.isupper(), name)) + (["ipu"] if "ipu" in self.modules else [])
        imports = ["\n".join(standard)] if standard else []
        imports += ["import numpy as np"] if self.tables else []
        imports += [f"from pypoplar import {', '.join(names)}"] if names else []
        parts += [f"{text}\n" for text in imports]
        constants = [f'{name} = TypeVar("{name}", {types})' for name, types in self.variables.items()]
        constants += [_table(name, table) for name, table in self.tables.items()]
        if constants:
            parts.append("\n".join(constants) + "\n")
        body = "\n\n".join([*self.functions.values(), *self.classes])
        return "\n".join(parts) + "\n\n" + body


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        if old != new:
            text = re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, text)
    return text


def _table(name: str, table: ConstantTable) -> str:
    dtype = np.dtype(table.type.dtype)
    values = np.frombuffer(table.data, dtype).reshape(table.shape)
    return f"{name} = np.array({values.tolist()!r}, np.{dtype.name if dtype.name != 'bool' else 'bool_'})"
