"""Listings of compiled code: the user's lines, with the bundles that the vendor's compiler would make of each."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from attrs import frozen

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.block_prices import Unpriced
from pypoplar.codelet.cost.bundles import Bundle
from pypoplar.codelet.cost.compiled_code import CompiledCode, CompiledLoop, compiled
from pypoplar.codelet.cost.instructions import LoopKind, Pipe
from pypoplar.codelet.cost.pricing import unpriced
from pypoplar.codelet.cost.scalar_prices import prices_of
from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.language.codelet_file import module_of_file
from pypoplar.codelet.language.cpp_source import CppSource, told_apart
from pypoplar.codelet.language.declaration import base_name
from pypoplar.codelet.language.fields import Vertex
from pypoplar.codelet.registry import CodeletRegistry, Template, codelet_classes, collect
from pypoplar.device import Device
from pypoplar.errors import PoplarError, PoplarTypeError
from pypoplar.target import Target
from pypoplar.tracebacks import public

_MARGIN = "      "
_COLUMN = 20


@public
def listing(codelet: type[Vertex], target: Target | Device | str = "bow") -> str:
    """What the code of a codelet becomes on a target: bundles with their worker slots, by the user's lines.

    A bundle has an instruction for the main pipe, for the auxiliary one, or for both; it stands below the line of the main
    pipe's, and says where that of the auxiliary pipe comes from, if from another line. Each loop says how it goes round, why it
    is no hardware repeat or not run on vectors, and where it ends. Estimates and estimators do not come into it.

    Parameters
    ----------
    codelet:
        A class, or an instance of a template.
    target:
        A Target, a Device, or a version of `IPUModel`.

    Returns
    -------
    str
        Lines of text.

    Raises
    ------
    CodeletError
        For what cannot be translated.
    PoplarTypeError
        For what is no codelet, or no target.
    InvalidOption
        If there is no such version.
    """
    return _listing(CodeletRegistry().find(codelet)[1], _target(target))


@frozen
class FileListing:
    """The listings of a file's codelets, and why some of them have none."""

    text: str
    refusals: tuple[PoplarError, ...] = ()


def listing_of_file(file: Path, name: str | None, target: Target | Device | str) -> FileListing:
    """The listing of the codelet of that name in a file, or those of all codelets of the file.

    A codelet that cannot be translated does not keep others from being listed. `UnknownVertexType` if none has the name.
    """
    machine, registry = _target(target), CodeletRegistry()
    refused: dict[str, PoplarError] = {}
    templates: list[Template] = []
    sources = told_apart([file], "")
    in_cpp = isinstance(sources[0], CppSource)
    if in_cpp:
        registry.add(collect(sources))
    for cls in () if in_cpp else codelet_classes(module_of_file(file)):
        try:
            codelets = collect(cls)
            registry.add(codelets)
        except PoplarError as refusal:
            refused[base_name(cls)] = refusal
        else:
            templates += [codelet for codelet in codelets if isinstance(codelet, Template)]
    if name is not None:
        if name in refused:
            raise refused[name]
        return FileListing(_listing(registry.find(name)[1], machine))
    texts = []
    for codelet in registry.codelets:
        try:
            texts.append(_listing(codelet, machine))
        except PoplarError as refusal:
            refused[codelet.name] = refusal
    texts += [f"{template.spelling}, a template: list an instance of it by its name\n" for template in templates]
    return FileListing("\n".join(texts), tuple(refused.values()))


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
    try:
        page = _Page(codelet, compiled(codelet.typed, target))
    except Unpriced as problem:
        raise unpriced(codelet.typed, problem) from problem
    kind, unit = {"vertex": "Vertex", "multi": "MultiVertex", "supervisor": "SupervisorVertex"}[codelet.kind], "in worker slots"
    if codelet.kind == "supervisor":
        unit = f"an instruction takes {target.supervisor_instruction_cycles} cycles"
    chip = "" if target.system == target.architecture else f", architecture {target.architecture}"
    head = [
        f"{codelet.name}, a {kind}, as compiled for {target.system}{chip} ({unit})",
        f"{_MARGIN}slots  {'main':{_COLUMN}}auxiliary",
    ]
    return "\n".join((*head, *page.lines())) + "\n"


@frozen(eq=False)
class _Page:
    codelet: Codelet
    code: CompiledCode

    def lines(self) -> Iterator[str]:
        counted = {loop.code.first: loop for loop in self.code.loops}
        whiles = {loop.first: loop for loop in self.code.whiles}
        ends = {loop.end: loop for loop in (*self.code.whiles, *(loop.code for loop in self.code.loops))}
        for number, run in enumerate(self.code.runs):
            if number in ends:
                yield from self._bundles(self.code.runs[ends[number].first].apart)
                yield f"{_MARGIN}-- end of the loop of line {self._line(ends[number].where)}"
            if number in whiles:
                yield f"{_MARGIN}-- loop of line {self._line(whiles[number].where)}, compare and branch: nothing counts its rounds"
            if number in counted:
                yield from self._loop(counted[number])
            if number not in counted or self._goes_one_by_one(counted[number]):
                yield from self._bundles(run.straight)

    def _loop(self, loop: CompiledLoop) -> Iterator[str]:
        how = {LoopKind.REPEAT: "a hardware repeat (rpt)", LoopKind.COUNTED: "counted down (brnzdec)"}
        reason = f": {loop.code.reason}" if loop.code.reason else ""
        line = self._line(loop.code.where)
        yield f"{_MARGIN}-- loop of line {line}, {how.get(loop.code.kind, 'add, compare and branch')}{reason}"
        if loop.price is None:
            yield f"{_MARGIN}-- not on vectors: {loop.reason}"
            return
        yield f"{_MARGIN}-- on vectors, {loop.price.slots} slots for {loop.price.width} rounds"
        yield from self._bundles(loop.bundles)
        if self._goes_one_by_one(loop):
            yield f"{_MARGIN}-- what is left over, {loop.price.rest} slots a round"

    @staticmethod
    def _goes_one_by_one(loop: CompiledLoop) -> bool:
        """Whether any round may be run by itself."""
        return loop.price is None or loop.rounds is None or loop.rounds % loop.price.width != 0

    def _line(self, where: int) -> int:
        return self._place(where).line

    def _place(self, where: int) -> Location:
        return self.codelet.typed.locations[where]

    def _bundles(self, bundles: Sequence[Bundle]) -> Iterator[str]:
        """Bundles below the lines that they belong to."""
        for (file, line), of_line in groupby(bundles, lambda bundle: self._text_place(bundle.where)):
            group = list(of_line)
            text = linecache.getline(file, line).strip()
            yield f"{line:5} {text or self._place(group[0].where).function}"
            for bundle in group:
                pipes = {instruction.pipe: instruction for instruction in bundle.instructions}
                names = [pipes[pipe].name if pipe in pipes else "" for pipe in (Pipe.MAIN, Pipe.AUXILIARY)]
                yield f"{_MARGIN}{bundle.slots:5}  {names[0]:{_COLUMN}}{names[1]:{_COLUMN}}{self._foreign(bundle)}".rstrip()

    def _foreign(self, bundle: Bundle) -> str:
        """Where the auxiliary pipe's instruction comes from, if not from the line that the bundle belongs to."""
        own = self._text_place(bundle.where)
        for file, line in {self._text_place(instruction.where) for instruction in bundle.instructions} - {own}:
            return f"of line {line}" if file == own[0] else f"of {Path(file).name}:{line}"
        return ""

    def _text_place(self, where: int) -> tuple[str, int]:
        place = self._place(where)
        return place.file, place.line
