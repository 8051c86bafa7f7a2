"""Runs an example of each class of vertices, on data that nobody has given, to find what the class costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from attrs import define, evolve, field

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.deciding_loads import LOOP, DecidingLoad, deciding_loads, faulting_fields
from pypoplar.engine.cost.class_examples import ClassCost, ClassExamples, Draws
from pypoplar.engine.cost.vertex_classes import VertexClasses
from pypoplar.errors import ControlProgramError, PoplarError
from pypoplar.executable.executable import Executable
from pypoplar.report.cost_basis import SampledType

Samples = Mapping[str, Draws]
"""By codelet and field the least and the largest value that is drawn."""

SEEDS = 3  # of the data of a class that is sampled


@define(eq=False)
class ClassRuns:
    """Finds the costs of classes, each when it is first asked for, or beforehand with others."""

    executable: Executable
    classes: VertexClasses
    samples: Samples
    _known: dict[int, ClassCost] = field(factory=dict)
    _counted: dict[int, ClassCost | None] = field(factory=dict)  # of classes that estimates price and data decide
    _ran: dict[int, ClassCost | PoplarError] = field(factory=dict)  # on ones, and not asked for yet
    _examples: ClassExamples | None = None
    _unsaid_of: dict[int, list[DecidingLoad]] = field(factory=dict)  # by codelet

    def run_beforehand(self, numbers: Sequence[int]) -> None:
        """Run classes together that are soon asked for, those that run once. Their faults are told when they are asked for."""
        wanted = [number for number in numbers if not self._is_found(number) and self._runs_once(number)]
        if wanted:
            self._ran.update(zip(wanted, self._made_examples().run_all(wanted), strict=True))

    def of(self, number: int) -> ClassCost:
        """What a vertex of the class costs; `ControlProgramError` where data decide that and nobody has said which."""
        if number not in self._known:
            self._known[number] = self._found(number)
        return self._known[number]

    def counts_of(self, number: int) -> ClassCost | None:
        """What a vertex of a class counts beside its cycles, which an estimate gives; None where it is not known.

        Where data decide branches, it is what one vertex counts whose data are ones; of loops whose rounds data decide, and of what
        faults with ones but may not with other data, nothing is known.
        """
        if number in self._counted:
            return self._counted[number]
        if number not in self._known and self._unsaid(number):
            return self._counted.setdefault(number, self._of_ones(number))
        try:
            return self.of(number)
        except PoplarError:
            if not self._unsaid_faults(number):
                raise
        return self._counted.setdefault(number, None)

    def _is_found(self, number: int) -> bool:
        return number in self._known or number in self._counted or number in self._ran

    def _runs_once(self, number: int) -> bool:
        """Whether a class runs at all, and on ones."""
        return self._codelet(number).name not in self.samples and not self._goes_round_by_data(number)

    def _goes_round_by_data(self, number: int) -> bool:
        """Whether nobody says how often a loop goes round: it may be for ever."""
        return any(load.decides == LOOP for load in self._unsaid(number))

    def of_ones(self) -> tuple[str, ...]:
        """The codelets of which one vertex on ones was counted."""
        return self._names([number for number, counts in self._counted.items() if counts is not None])

    def uncounted(self) -> tuple[str, ...]:
        """The codelets of which it is not known what they count."""
        return self._names([number for number, counts in self._counted.items() if counts is None])

    def sampled(self) -> tuple[SampledType, ...]:
        """The codelets that were priced with data that were drawn."""
        found = []
        for name, fields in self.samples.items():
            codelets = self.executable.codelets
            costs = [cost for number, cost in self._known.items() if codelets[int(self.classes.codelet[number])].name == name]
            if costs:
                values = ", ".join(f"{field} from {low:g} to {high:g}" for field, (low, high) in fields.items())
                least, most = min(cost.least_slots for cost in costs), max(cost.slots for cost in costs)
                found.append(SampledType(name, values, least, most))
        return tuple(found)

    def _names(self, numbers: list[int]) -> tuple[str, ...]:
        return tuple(sorted({self._codelet(number).name for number in numbers}))

    def _codelet(self, number: int) -> Codelet:
        return self.executable.codelets[int(self.classes.codelet[number])]

    def _unsaid(self, number: int) -> list[DecidingLoad]:
        """What decides the cost of a class and no sample tells."""
        which = int(self.classes.codelet[number])
        if which not in self._unsaid_of:
            codelet = self.executable.codelets[which]
            given = self.samples.get(codelet.name)
            self._unsaid_of[which] = [load for load in deciding_loads(codelet.typed) if not _is_said(load, given)]
        return self._unsaid_of[which]

    def _unsaid_faults(self, number: int) -> list[str]:
        """Fields whose values can make a vertex of the class fail, and of which no sample tells."""
        codelet = self._codelet(number)
        return sorted(faulting_fields(codelet.typed) - self.samples.get(codelet.name, {}).keys())

    def _of_ones(self, number: int) -> ClassCost | None:
        if self._goes_round_by_data(number):
            return None
        cost = self._run(number, {}, 0)
        return None if isinstance(cost, PoplarError) else cost

    def _run(self, number: int, given: Draws, seed: int) -> ClassCost | PoplarError:
        if number in self._ran:
            return self._ran.pop(number)
        return self._made_examples().run(number, given, seed)

    def _made_examples(self) -> ClassExamples:
        if self._examples is None:
            self._examples = ClassExamples.of(self.executable, self.classes)
        return self._examples

    def _found(self, number: int) -> ClassCost:
        unsaid = self._unsaid(number)
        if unsaid:
            self._refuse(number, unsaid)
        codelet = self._codelet(number)
        given = self.samples.get(codelet.name, {})
        seeds = SEEDS if given or (codelet.name in self.samples and deciding_loads(codelet.typed)) else 1
        ran = [self._run(number, given, seed) for seed in range(seeds)]
        costs = [cost for cost in ran if isinstance(cost, ClassCost)]
        if not costs:
            raise self._of_data(number, next(fault for fault in ran if isinstance(fault, PoplarError)))
        largest = max(costs, key=lambda cost: cost.slots)
        return evolve(largest, least_slots=min(cost.slots for cost in costs))

    def _of_data(self, number: int, fault: PoplarError) -> PoplarError:
        """A fault, with what to say where other data would not have it."""
        fields = self._unsaid_faults(number)
        if not fields:
            return fault
        drawn = ", ".join(f"{name!r}: (low, high)" for name in fields)
        return type(fault)(
            f"{fault}\nwith ones for the values of {', '.join(map(repr, fields))}, as mode='cost' has no data: give values to "
            f"draw, sample={{{self._codelet(number).name!r}: {{{drawn}}}}}"
        )

    def _refuse(self, number: int, unsaid: list[DecidingLoad]) -> NoReturn:
        codelet = self._codelet(number).typed
        names, vertex = self.executable.vertex_names, self._vertex(number)
        file, line, _ = names.locations[int(names.location[vertex])]
        fields = {load.source: "(low, high)" for load in unsaid if load.is_field}
        drawn = ", ".join(f"{name!r}: {bounds}" for name, bounds in fields.items())
        told = []
        for load in unsaid:
            place = codelet.locations[load.where]
            what = f"the value of {load.source!r}" if load.is_field else load.source
            told.append(f"  {what} decides {load.decides} at {place.file}:{place.line}")
        raise ControlProgramError(
            f"mode='cost' does not know what codelet {codelet.name!r} costs, as data decide that:\n"
            + "\n".join(dict.fromkeys(told))
            + f"\n  vertex {vertex}, added at {file}:{line}\n"
            f"Give an estimate (Graph.setPerfEstimate, or a method cycles of the codelet), or values to draw: "
            f"sample={{{codelet.name!r}: {{{drawn}}}}}"
        )

    def _vertex(self, number: int) -> int:
        return int(self.executable.computes.vertex[self.classes.example[number]])


def _is_said(load: DecidingLoad, given: Mapping[str, Any] | None) -> bool:
    """Whether a sample tells what is loaded; of what is read of the tile, random numbers say, it is enough that there is one."""
    return given is not None and (not load.is_field or load.source in given)
