"""The rooms of the house: on which floor each stands, which modules it has, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
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
    "compiler.lowering",
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
    "poptorch.enums poptorch.user_log",
    "poptorch.options",
    "poptorch.optim poptorch.data",
    "poptorch.operators",
    "poptorch.capture",
    "poptorch.lowering poptorch.update",
    "poptorch.outlining",
    "poptorch.executor",
    "poptorch",
    "popdist.poptorch",
    "onnx",
    "popart",
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

    def _imports(self, module: str) -> Iterator[Arrow]:
        tree = ast.parse(self.modules[module].read_text(encoding="utf-8"))
        typing_only: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                typing_only |= {inner for statement in node.body for inner in ast.walk(statement)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: a relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                package, _, rest = name.partition(".")
                if package == "pypoplar":
                    yield Arrow(module, rest if rest in self.modules else rest.rpartition(".")[0], node in typing_only)


def _says_nothing(path: Path) -> bool:
    """Whether a package is only the folder of its rooms."""
    return path.name == "__init__.py" and len(ast.parse(path.read_text(encoding="utf-8")).body) <= 1
