"""What a source uses of the private names of a package: what begins with an underscore, and what stands in a module that does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from attrs import field, frozen

PRIVATE = re.compile(r"_[A-Za-z]\w*")
OPERATIONS = "torch.ops."  # an operation's name is followed by that of its overload


@frozen
class PrivateUses:
    """Whole paths, where the source shows where a name is from, and the names of what it asks unknown objects for."""

    paths: set[str] = field(factory=set)
    names: set[str] = field(factory=set)


def is_private(path: str) -> bool:
    return any(PRIVATE.fullmatch(part) for part in path.split("."))


def private_uses(tree: ast.AST, package: str) -> PrivateUses:
    """The private names of a package that a source imports, takes as attributes, or has as texts."""
    visitor = _Uses(package)
    visitor.visit(tree)
    return visitor.uses


class _Uses(ast.NodeVisitor):
    """Follows what is imported of the package, and what is given another name at once: `aten = torch.ops.aten`."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.uses = PrivateUses()
        self.bound: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self.bound[alias.asname or first] = alias.name if alias.asname else first
            self.note(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            self.note(f"{node.module}.{alias.name}")

    def visit_Assign(self, node: ast.Assign) -> None:
        path = self.path(node.value)
        if path and isinstance(node.targets[0], ast.Name):
            self.bound[node.targets[0].id] = path
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self.path(node)
        if path:
            kept = isinstance(node.ctx, ast.Load) or PRIVATE.fullmatch(node.attr)  # else it is our own that is put there
            self.note(path if kept else path.rpartition(".")[0])
            return
        if PRIVATE.fullmatch(node.attr):
            self.uses.names.add(node.attr)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            if PRIVATE.fullmatch(node.value):
                self.uses.names.add(node.value)
            elif re.fullmatch(rf"{self.package}(\.\w+)+", node.value):
                self.note(node.value)

    def path(self, node: ast.expr) -> str:
        """The path of a chain of attributes that begins with something imported; empty for others."""
        if isinstance(node, ast.Name):
            return self.bound.get(node.id, "")
        if isinstance(node, ast.Attribute):
            within = self.path(node.value)
            return f"{within}.{node.attr}" if within else ""
        return ""

    def note(self, path: str) -> None:
        if path.partition(".")[0] != self.package:
            return
        if path.startswith(OPERATIONS):
            path = ".".join(path.split(".")[:4])
        if is_private(path):
            self.uses.paths.add(path)


def defined_names(tree: ast.AST) -> Iterator[str]:
    """What a source itself calls so: functions, classes, variables, arguments, and attributes of its objects."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.arg():
                yield node.arg
            case ast.Attribute(value=ast.Name(id="self" | "cls"), ctx=ast.Store()):
                yield node.attr


def longest(paths: Iterable[str]) -> set[str]:
    """The paths without those that others begin with: of a module it is enough to know what is taken out of it."""
    paths = set(paths)
    return {path for path in paths if not any(other.startswith(f"{path}.") for other in paths)}
