"""Listings of compiled code: the user's lines, with the bundles that the vendor's compiler would make of each."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from attrs import frozen

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.bundles import Bundle
from pypoplar.codelet.cost.compiled_code import CompiledCode, CompiledLoop, compiled
from pypoplar.codelet.cost.instructions import LoopKind, Pipe
from pypoplar.codelet.cost.scalar_prices import prices_of
from pypoplar.codelet.registry import CodeletRegistry, collect
from pypoplar.device import Device
from pypoplar.errors import PoplarTypeError
from pypoplar.target import Target
from pypoplar.tracebacks import public

_MARGIN = "      "
_COLUMN = 20


@public
def listing(codelet: Any, target: Target | Device | str = "bow") -> str:
    """What the code of a codelet becomes on a target: bundles with their worker slots, by the user's lines.

    `codelet` is a class, or an instance of a template; `target` a Target, a Device, or a name of `IPUModel`. A bundle has an
    instruction for the main pipe, for the auxiliary one, or for both. Each loop says how it goes round, and why it is no hardware
    repeat or not run on vectors. Estimates and estimators do not come into it.

    Raises `CodeletError` for what is no codelet or cannot be translated, `InvalidOption` for an unknown target.
    """
    return _listing(CodeletRegistry().find(codelet)[1], _target(target))


def listing_of_file(file: Path, name: str, target: Target | Device | str) -> str:
    """The listing of a codelet of that name in a file; `UnknownVertexType` if there is none."""
    registry = CodeletRegistry()
    registry.add(collect([str(file)]))
    return _listing(registry.find(name)[1], _target(target))


def _target(target: object) -> Target:
    if isinstance(target, Device):
        return target.getTarget()
    if isinstance(target, str):
        return Target.of_preset(target)
    if not isinstance(target, Target):
        raise PoplarTypeError(f"a listing is for a Target, a Device or a name of IPUModel, got {target!r}")
    return target


def _listing(codelet: Codelet, target: Target) -> str:
    prices_of(target)  # an architecture that nobody has priced is refused
    page = _Page(codelet, compiled(codelet.typed, target))
    kind, unit = {"vertex": "Vertex", "multi": "MultiVertex", "supervisor": "SupervisorVertex"}[codelet.kind], "in worker slots"
    if codelet.kind == "supervisor":
        unit = f"an instruction takes {target.supervisor_instruction_cycles} cycles"
    head = [
        f"{codelet.name}, a {kind}, as compiled for {target.architecture} ({unit})",
        f"{_MARGIN}slots  {'main':{_COLUMN}}auxiliary",
    ]
    return "\n".join((*head, *page.lines())) + "\n"


@frozen(eq=False)
class _Page:
    codelet: Codelet
    code: CompiledCode

    def lines(self) -> Iterator[str]:
        starts = {loop.code.first: loop for loop in self.code.loops}
        for number, run in enumerate(self.code.runs):
            if number in starts:
                yield from self._loop(starts[number])
            yield from self._bundles(run.bundles)

    def _loop(self, loop: CompiledLoop) -> Iterator[str]:
        place = self.codelet.typed.locations[loop.code.where]
        how = {LoopKind.REPEAT: "a hardware repeat (rpt)", LoopKind.COUNTED: "counted down (brnzdec)"}
        reason = f": {loop.code.reason}" if loop.code.reason else ""
        yield f"{_MARGIN}-- loop of line {place.line}, {how.get(loop.code.kind, 'add, compare and branch')}{reason}"
        if loop.price is None:
            yield f"{_MARGIN}-- not on vectors: {loop.reason}"
            return
        yield f"{_MARGIN}-- on vectors, {loop.price.slots} slots for {loop.price.width} rounds"
        yield from self._bundles(loop.bundles)
        yield f"{_MARGIN}-- what is left over, {loop.price.rest} slots a round"

    def _bundles(self, bundles: Sequence[Bundle]) -> Iterator[str]:
        """Bundles below the lines that they belong to."""
        places = self.codelet.typed.locations
        for where, of_line in groupby(bundles, lambda bundle: bundle.where):
            place = places[where]
            text = linecache.getline(place.file, place.line).strip()
            yield f"{place.line:5} {text or place.function}"
            for bundle in of_line:
                pipes = {instruction.pipe: instruction.name for instruction in bundle.instructions}
                main, auxiliary = pipes.get(Pipe.MAIN, ""), pipes.get(Pipe.AUXILIARY, "")
                yield f"{_MARGIN}{bundle.slots:5}  {main:{_COLUMN}}{auxiliary}".rstrip()
