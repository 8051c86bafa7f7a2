"""Codelets of C++ files, as graphs take them: found, written as Python, translated; kept by what was read."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cpp.class_fields import (
    CppClass,
    bases_by_name,
    fields_of,
    has_compute,
    is_open,
    kind_of,
    own_compute,
    poplar_name,
    spelling_of,
    template_of,
)
from pypoplar.codelet.cpp.codebook import Codebook
from pypoplar.codelet.cpp.writing import Refused, refused
from pypoplar.codelet.cpp_tree.cpp_types import type_of
from pypoplar.codelet.cpp_tree.translation_unit import CppFile, parse
from pypoplar.codelet.cpp_tree.tree import Node
from pypoplar.codelet.ir.terms import Kind, Location
from pypoplar.codelet.language.constraints import demanded_apart
from pypoplar.codelet.language.declaration import Field, split_name
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.errors import CodeletCompileError, CodeletError, UnknownVertexType

_PROBE = "pypoplar_probe_"


@define
class CppCodelets:
    """The codelets of one file, and its templates, of which instances are made by their names."""

    file: CppFile
    codelets: list[Codelet] = field(factory=list)
    templates: dict[str, Location] = field(factory=dict)  # by their names without arguments
    kinds: dict[str, Kind] = field(factory=dict)
    instances: list[str] = field(factory=list)  # of templates, that the file makes itself
    refusals: list[CodeletError] = field(factory=list)
    bare: list[str] = field(factory=list)  # vertices that have no compute
    headers: tuple[str, ...] = ()  # files that were read, but for ours

    def has(self, name: str) -> bool:
        """Whether a name is of a template here."""
        base, arguments = split_name(name)
        return base in self.templates and bool(arguments)

    def instance(self, name: str) -> Codelet | None:
        """The instance of a template that a name names, ``"ns::Scale<half, 4>"``; None if there is no such template."""
        base, arguments = split_name(name)
        if base not in self.templates or not arguments:
            return None
        try:
            made = _probed(self.file, {name: self.kinds[base]})
        except CodeletCompileError as problem:
            raise UnknownVertexType(f"'{name}' is no instance of the template {base}: {problem.msg}") from None
        return _codelet(made[0], self.file)


def codelets_of(file: CppFile, *, keep_going: bool = False) -> CppCodelets:
    """The codelets of a file: of each class, and of each instance that the file itself makes of a template."""
    unit = parse(file)
    found = CppCodelets(file, headers=unit.headers)
    classes: list[CppClass] = []
    instances: dict[str, Kind] = {}
    _look(unit.root, found, classes, instances)
    if instances:
        classes = [*classes, *_probed(file, instances)]
    if not classes and not found.templates:
        what = "no class derived from poplar::Vertex, MultiVertex or SupervisorVertex with a compute method"
        if found.bare:
            what += f"; {', '.join(found.bare)} has no compute: write bool compute() {{ ... return true; }}"
        raise CodeletError(f"{file.name} has no codelets: {what}", (file.name, 1, None, None))
    for one in classes:
        if keep_going:
            _keep(one, file, found)
        else:
            found.codelets.append(_codelet(one, file))
    return found


def _probe(number: int, name: str, kind: Kind, bases: Sequence[str]) -> str:
    """A function that calls compute, so that libclang writes the instance out, and that names the bases by what they are there."""
    parameters = ", ".join([f"{name} &v", *(f"{name}::{base} *" for base in bases)])
    return f"void {_PROBE}{number}({parameters}) {{ v.compute({'0' if kind == 'multi' else ''}); }}"


def _probed(file: CppFile, names: Mapping[str, Kind]) -> list[CppClass]:
    """The classes of some names, with those of their bases that depend on arguments, which libclang does not tell by itself."""
    bases: list[list[str]] = [[] for _ in names]
    while True:
        probes = [_probe(number, name, kind, bases[number]) for number, (name, kind) in enumerate(names.items())]
        unit = parse(file, "\n".join(probes))
        functions = [child for child in unit.root.get_children() if child.kind.name == "FUNCTION_DECL"]
        probed = [child for child in functions if child.spelling.startswith(_PROBE)]
        found = [_class(cursor, known) for cursor, known in zip(probed, bases, strict=True)]
        missing = [bases_by_name(one.type.get_declaration(), one.bases) for one in found]
        if not any(missing):
            return found
        bases = [[*known, *dict.fromkeys(more)] for known, more in zip(bases, missing, strict=True)]


def _class(probe: Any, bases: Sequence[str]) -> CppClass:
    """The class that a probe behind a file's end names."""
    type, *known = [parameter.type.get_pointee().get_canonical() for parameter in probe.get_arguments()]
    call = next(node for node in Node(probe).walk() if node.kind == "CALL_EXPR" and node.name == "compute")
    vertex = _kind(type.get_declaration())
    assert call.referenced is not None
    assert vertex is not None
    return CppClass(poplar_name(spelling_of(type)), vertex, call.referenced, type, dict(zip(bases, known, strict=True)))


def _codelet(one: CppClass, file: CppFile) -> Codelet:
    """The codelet of a class; what has no form is a `CodeletError` at its line."""
    location = Location(one.node.file, one.node.line, one.name)
    try:
        source = _source(one)
    except Refused as reason:
        raise refused(reason.node, f"{one.name}: {reason.message}", functools.partial(_line, file)) from None
    except RecursionError:
        raise CodeletError(
            f"{one.name}: an expression or a block is nested too deeply", (location.file, location.line, None, None)
        ) from None
    codelet = Codelet(source, location)
    try:
        _ = codelet.typed
    except CodeletError as problem:
        text = _line(file, problem.filename or "", problem.lineno or 0)
        offset = len(text) - len(text.lstrip()) + 1
        raise CodeletError(f"{one.name}: {problem.msg}", (problem.filename, problem.lineno, offset, text)) from None
    return codelet


def _keep(one: CppClass, file: CppFile, found: CppCodelets) -> None:
    """The codelet of a class, or all that keeps it from being one."""
    refusals: list[Refused] = []
    try:
        _source(one, refusals)
    except Refused as reason:
        refusals.append(reason)
    except RecursionError:
        pass  # said below
    if refusals:
        lines = functools.partial(_line, file)
        found.refusals += [refused(reason.node, f"{one.name}: {reason.message}", lines) for reason in refusals if reason.message]
        return
    try:
        found.codelets.append(_codelet(one, file))
    except CodeletError as problem:
        found.refusals.append(problem)


def _source(one: CppClass, refusals: list[Refused] | None = None) -> CodeletSource:
    fields = fields_of(one)
    book = Codebook(fields, one.name, refusals=refusals)
    compute = one.node
    if compute.kind != "CXX_METHOD":
        found = [Node(child) for child in compute.cursor.get_children() if child.spelling == "compute"]
        definition = found[0].cursor.get_definition() if found else None
        if definition is None:
            raise Refused(compute, "it has no compute with a body: write bool compute() { ... return true; }")
        compute = Node(definition)
    _check_compute(compute, one.kind)
    book.compute(compute, [])
    declared = tuple(field.field() for field in fields.values())
    return CodeletSource(
        one.name,
        one.kind,
        declared,
        tuple(function for function in book.functions if function is not None),
        {},
        tuple(table for table, _ in book.tables.values()),
        distinct=_distinct(one, compute, declared),
    )


def _check_compute(compute: Node, kind: Kind) -> None:
    """Refuse a compute of another form than its kind of vertex has."""
    parameters = [child for child in compute.children if child.kind == "PARM_DECL"]
    if compute.cursor.is_virtual_method():
        raise Refused(compute, "a virtual compute: device code has no tables of functions; leave virtual out")
    if kind == "multi" and (len(parameters) != 1 or parameters[0].type.sort != "number"):
        raise Refused(compute, "compute of a MultiVertex takes the number of the worker: write bool compute(unsigned worker)")
    if kind != "multi" and parameters:
        raise Refused(compute, "compute of this kind of vertex takes nothing: write bool compute()")
    result = type_of(compute.cursor.result_type)
    if result.sort != "void" and result.code != "bool":
        raise Refused(compute, f"compute gives a bool, or nothing, not {result.spelling}: write bool compute()")


def _distinct(one: CppClass, compute: Node, fields: tuple[Field, ...]) -> tuple[tuple[str, str], ...]:
    """The fields that ``[[poplar::constraint("elem(*x) != elem(*y)")]]`` of the class keeps apart."""
    declared = one.type.get_declaration()
    cursor = template_of(declared) or declared
    tokens = []
    for token in cursor.get_tokens():
        if token.spelling == "{":
            break
        tokens.append(token.spelling)
    pairs: list[tuple[str, str]] = []
    if "constraint" in tokens:
        texts = [token for token in tokens[tokens.index("constraint") :] if token.startswith('"')]
        for text in texts:
            try:
                pairs += demanded_apart(text.strip('"'), fields)
            except ValueError as reason:
                raise Refused(Node(cursor), f"constraint {text}: {reason}") from None
        if not texts:
            raise Refused(Node(cursor), 'a constraint is a text: [[poplar::constraint("elem(*x) != elem(*y)")]]')
    names = [field.name for field in fields]
    return tuple(sorted(set(pairs), key=lambda pair: (names.index(pair[0]), names.index(pair[1]))))


def _line(file: CppFile, name: str, number: int) -> str:
    """The text of a line of a file, or of the text that stands for one."""
    if name == file.name:
        return file.line(number)
    return linecache.getline(name, number).rstrip("\n")


def _look(cursor: Any, found: CppCodelets, classes: list[CppClass], probed: dict[str, Kind]) -> None:
    """The classes of vertices in a file, and the names of those that are known only with a probe."""
    for child in cursor.get_children():
        kind = child.kind.name
        place = child.location.file
        if place is not None and "/cpp/headers/" in place.name:
            continue
        if kind in ("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"):
            _look(child, found, classes, probed)
        elif kind in ("CLASS_DECL", "STRUCT_DECL") and (child.is_definition() or child.type.get_num_template_arguments() > 0):
            _look_at_class(child, found, classes, probed)
        elif kind == "CLASS_TEMPLATE" and _kind(child) is not None and child.is_definition() and has_compute(child):
            name = Node(child).qualified()
            found.kinds[name] = _kind(child) or "vertex"
            found.templates[name] = Location(child.location.file.name, child.location.line, name)


def _kind(cursor: Any) -> Kind | None:
    """The kind of vertex; a class whose base is an argument counts as one where it has a compute, and is refused with its line."""
    return kind_of(cursor) or ("vertex" if is_open(cursor) and has_compute(cursor) else None)


def _look_at_class(cursor: Any, found: CppCodelets, classes: list[CppClass], probed: dict[str, Kind]) -> None:
    vertex = _kind(cursor)
    if vertex is None:
        return
    type = cursor.type.get_canonical()
    if cursor.type.get_num_template_arguments() > 0:
        name = spelling_of(type)
        found.instances.append(name)
        probed[name] = vertex
    elif not has_compute(cursor):
        found.bare.append(poplar_name(type.spelling))
    elif own_compute(cursor) and not bases_by_name(cursor, {}):
        classes.append(CppClass(poplar_name(type.spelling), vertex, Node(cursor), type))
    else:
        probed[type.spelling.replace("(anonymous namespace)::", "")] = vertex  # the file itself finds it without
