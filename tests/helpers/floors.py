"""The rooms of the house: on which floor each stands, which modules it has, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

# From the ground up, as `docs/how-it-works.md` draws them; a module is of the room that the longest beginning of its name gives.
FLOORS = (
    "interface errors presets spelling",
    "braces called_names extras files progress signatures tracebacks watchers",
    "host_code",
    "types options resources arrays ipu notebook",
    "target host_values host_memory",
    "device",
    "codelet.operations",
    "codelet.ir",
    "codelet.cost",
    "codelet.device_wording",
    "codelet.language",
    "codelet.frontend",
    "codelet.codelet",
    "codelet.cpp_tree",
    "codelet.cpp",
    "codelet.registry",
    "codelet.listing",
    "codelet.backend",
    "codelet.python codelet.llvm",
    "codelet.backend.native_codelet",
    "graph",
    "program",
    "executable",
    "executable.verify",
    "executable.executable_file",
    "compiler.wording compiler.field_table compiler.exchange_plan",
    "compiler.control",
    "compiler.check",
    "compiler.liveness",
    "compiler.memory",
    "compiler.exchange",
    "compiler.flattening",
    "compiler",
    "report",
    "report.making",
    "report.insights report.naming",
    "report.file report.text",
    "report.page report.perfetto report.notebook_tables",
    "pva",
    "profile",
    "engine",
    "engine.interpreter engine.native",
    "engine.replicas",
    "engine.processes",
    "engine.cost",
    "engine.engine",
    "engine.cost_engine",
    "popdist",
    "prediction",
    "poputil",
    "popops.elements.element_operations",
    "popops.elements.element_docstrings",
    "popops.expr",
    "popops.elements",
    "popops",
    "poprand poplin gcl",
    "popnn",
    "poptorch.asserted_errors poptorch.enums poptorch.explicit_backward poptorch.user_log",
    "poptorch.options",
    "poptorch.optim poptorch.data",
    "poptorch.operators",
    "poptorch.capture",
    "poptorch.lowering poptorch.update",
    "poptorch.outlining poptorch.pipelines",
    "poptorch.executor",
    "poptorch",
    "popdist.poptorch",
    "onnx",
    "popart",
    "keras",
    "testing",
    "poprun",
    "documents",
    "cli",
    "__main__",
    "",  # pypoplar itself: the public names
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split(" ")}

LATE = {  # methods of public classes that hand their object to a room above, which is loaded when it is asked for
    ("executable.executable", "executable.executable_file"),
    ("engine.engine", "engine.cost_engine"),  # an engine of another class, by its mode
    ("notebook", "report.notebook_tables"),
    ("report.report", "report.page"),
}


class Arrow(NamedTuple):
    """An import of one module by another."""

    module: str
    target: str
    typing_only: bool


def room(module: str) -> str | None:
    """The room of a module: the longest beginning of its name that has a floor."""
    parts = module.split(".")
    return next((name for end in range(len(parts), 0, -1) if (name := ".".join(parts[:end])) in FLOOR), None)


class House:
    """The modules below the folder of pypoplar, by their names without pypoplar's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module_name(self, path: Path) -> str:
        """A module's name without pypoplar's own; a package has that of its folder."""
        return ".".join(path.relative_to(self.folder).with_suffix("").parts).removesuffix("__init__").removesuffix(".")

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Where each module is, without packages that are only the folder of their rooms."""
        paths = [path for path in sorted(self.folder.rglob("*.py")) if "_resources" not in path.parts]
        return {self.module_name(path): path for path in paths if not _says_nothing(path)}

    @cached_property
    def arrows(self) -> set[Arrow]:
        """All imports of one module by another, wherever in it."""
        return {arrow for module in self.modules for arrow in self._imports(module)}

    @cached_property
    def classes(self) -> list[tuple[str, str]]:
        """All classes, wherever in a module: name and module."""
        return [(name, module) for module, path in self.modules.items() for name in said(path).classes]

    def _imports(self, module: str) -> Iterator[Arrow]:
        for name, typing_only in said(self.modules[module]).imports:
            package, _, rest = name.partition(".")
            if package == "pypoplar":
                yield Arrow(module, rest if rest in self.modules else rest.rpartition(".")[0], typing_only)


class Said(NamedTuple):
    """What is asked of the text of a module."""

    statements: int  # on its top
    imports: list[tuple[str, bool]]  # with whether it is for type checkers only
    classes: list[str]


def said(path: Path) -> Said:
    """What a module says; it is read once, until it is written again."""
    file = path.stat()
    return _said(path, file.st_mtime_ns, file.st_size)


@cache
def _said(path: Path, written: int, size: int) -> Said:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: list[tuple[str, bool]] = []
    classes: list[str] = []
    for node, typing_only in statements(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, typing_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            imports += [(f"{node.module}.{alias.name}", typing_only) for alias in node.names]
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name)
    return Said(len(tree.body), imports, classes)


def statements(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """All statements of a module, wherever in it, and whether each is for type checkers only; what they compute is left out."""
    waiting = [(tree, False)]
    while waiting:
        node, typing_only = waiting.pop()
        yield node, typing_only
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, ())
            if isinstance(inner, list):  # an expression has one too, which is none
                waiting += [(each, typing_only or (for_types and part == "body")) for each in inner]


def _says_nothing(path: Path) -> bool:
    """Whether a package is only the folder of its rooms."""
    return path.name == "__init__.py" and said(path).statements <= 1
