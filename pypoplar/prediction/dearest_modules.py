"""The dearest modules of a program: names under which cycles lie, and what binds each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.report.execution import Execution, IpuStep, Step
from pypoplar.report.insights.compute_insights import units_of
from pypoplar.report.memory_report import LoweredVariables
from pypoplar.report.naming.name_tree import NameTree, name_tree, sums_below
from pypoplar.report.report import Compilation

DESCENDED = 0.1  # share of all cycles from which a module is told by its parts
SHARES: Mapping[str, tuple[str, ...]] = {  # of a step's cycles, by what they are spent on
    "compute": ("compute_cycles",),
    "exchange": ("exchange_cycles", "copy_cycles"),
    "links": ("global_exchange_cycles",),
    "host": ("host_exchange_cycles",),
    "sync": ("sync_cycles",),
}
MEMORY_WIDTH = "memory width"
UNNAMED = "(no name)"


@frozen
class PredictedModule:
    """What stands under a name and what it would cost; given by `Prediction.modules`.

    Attributes
    ----------
    name:
        A path: ``layer1/conv``. Modules that differ in numbers only stand together where none of them takes a tenth of all
        cycles: ``layer/*/conv``.
    cycles:
        Of all its steps.
    share:
        Of all cycles.
    bound_by:
        What most of its cycles are spent on: ``"compute"``, ``"exchange"``, ``"links"`` between IPUs, ``"host"`` or ``"sync"``; in
        place of compute ``"memory width"``, if its vertices load and store more than their operations keep up with, by the
        ceilings of the roofline.
    """

    name: str
    cycles: int
    share: float
    bound_by: str


def spent(steps: Sequence[Step | IpuStep]) -> dict[str, int]:
    """Cycles of steps, or of IPUs, by what they are spent on, one of `SHARES`."""
    return {what: sum(getattr(step, name) for step in steps for name in names) for what, names in SHARES.items()}


def dearest_modules(execution: Execution, compilation: Compilation) -> tuple[PredictedModule, ...]:
    """All modules, the dearest first; their cycles add up to those of all steps."""
    steps = execution.steps
    total = sum(step.cycles for step in steps)
    if not total:
        return ()
    groups = _Descent.of(steps, total).groups()
    peaks = {kind.name: max(units_of(compilation, kind.name).values(), default=0.0) for kind in compilation.vertex_types}
    modules = []
    for name, numbers in groups.items():
        own = [steps[number] for number in numbers]
        cycles = sum(step.cycles for step in own)
        if cycles:
            modules.append(
                PredictedModule(name, cycles, cycles / total, _bound(own, peaks, compilation.target.memory_bytes_per_cycle))
            )
    return tuple(sorted(modules, key=lambda module: (-module.cycles, module.name)))


@frozen(eq=False)
class _Descent:
    """A walk down the tree of names, to where no name has a good part of all cycles, or nothing stands below it."""

    tree: NameTree
    below: Sequence[Sequence[int]]  # by node
    cycles: Sequence[int]  # by node, with those of all nodes below it
    least: float

    @staticmethod
    def of(steps: Sequence[Step], total: int) -> _Descent:
        tree = name_tree(dict(enumerate(steps)), LoweredVariables())
        below: list[list[int]] = [[] for _ in tree.name]
        for node, above in enumerate(tree.parent[1:], 1):
            below[above].append(node)
        own = [sum(steps[number].cycles for number in numbers) for numbers in tree.steps]
        return _Descent(tree, below, sums_below(tree.parent, own), DESCENDED * total)

    def groups(self) -> dict[str, list[int]]:
        """By name of a module its steps."""
        folded = self.tree.folds()
        found: dict[str, list[int]] = {}
        open_groups: list[tuple[str, list[int]]] = [("", [0])]
        while open_groups:
            name, nodes = open_groups.pop()
            children = [child for node in nodes for child in self.below[node]]
            if not children or sum(self.cycles[node] for node in nodes) < self.least:
                found.setdefault(name or UNNAMED, []).extend(self._steps_below(nodes))
                continue
            own = [number for node in nodes for number in self.tree.steps[node]]
            if own:
                found.setdefault(name or UNNAMED, []).extend(own)
            siblings: dict[str, list[int]] = {}
            for child in children:
                alone = self.cycles[child] >= self.least or not folded[child]
                siblings.setdefault(self.tree.name[child] if alone else folded[child], []).append(child)
            open_groups += [(f"{name}/{part}" if name else part, group) for part, group in siblings.items()]
        return found

    def _steps_below(self, nodes: Sequence[int]) -> list[int]:
        level, found = list(nodes), []
        while level:
            found += [number for node in level for number in self.tree.steps[node]]
            level = [child for node in level for child in self.below[node]]
        return found


def _bound(steps: Sequence[Step], peaks: Mapping[str, float], width: float) -> str:
    """What binds a module's steps together."""
    by_part = spent(steps)
    most = max(by_part, key=lambda what: by_part[what])
    return MEMORY_WIDTH if most == "compute" and _loads_more(steps, peaks, width) else most


def _loads_more(steps: Sequence[Step], peaks: Mapping[str, float], width: float) -> bool:
    """Whether what vertices load and store takes longer, at the memory's full width, than their operations at their peak."""
    if not width:
        return False
    memory = operations = 0.0
    for step in steps:
        memory += step.memory_bytes / width
        peak = max((peaks.get(kind, 0.0) for kind in (step.program.vertices if step.program is not None else ())), default=0.0)
        operations += step.flops / peak if peak else 0.0
    return memory > operations
