"""The kinds of programs: what an Engine runs, made of compute sets, copies and control flow.

Programs are light objects. What a constructor's arguments alone decide is checked there; the rest when the Engine is built. Every
program takes a debug name as its last argument. Programs have value semantics, as in Poplar: a `Sequence` or `Switch` put into
another program is taken as it is then, and steps added to it later are not part of that program.

For the compiler, each kind keeps its arguments under these names; all have `name` (str) and `location`:

    Sequence           programs: list[Program]
    Execute            compute_set: ComputeSet, result: Tensor | None
    Copy               source, destination: Tensor, DataStream or RemoteBuffer; offset: Tensor | None (rows of a remote buffer)
    Repeat             count: int, body: Program
    RepeatWhileTrue    condition: Program, predicate: Tensor, body: Program     (RepeatWhileFalse likewise)
    If                 predicate: Tensor, then: Program, otherwise: Program
    Switch             index: Tensor, cases: list[tuple[int, Program]], default: Program | None
    Call               function: Function | HostFunction, inputs: list[Tensor], outputs: list[Tensor]
    PrintTensor        title: str, tensor: Tensor
    WriteUndef         tensor: Tensor
    Sync               type: SyncType
    Abort              message: str
    AbortOnCondition   predicate: Tensor, message: str
    ErrorProgram       message: str, tensor: Tensor
    CycleCount         body: Program, result: Tensor (UNSIGNED_INT [2]: low and high word), tile: int, type: SyncType
    CycleStamp         result: Tensor, tile: int, type: SyncType
    SetFloatingPointBehaviour  behaviour: FloatingPointBehaviour
    SetStochasticRounding      enabled: bool
    SetSeed            seed: Tensor (UNSIGNED_INT [2]), modifier: int
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from copy import copy
from enum import Enum
from typing import Any

from attrs import frozen

from pypoplar.errors import ControlProgramError, PoplarTypeError, TensorShapeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import DataStream, Function, HostFunction, RemoteBuffer
from pypoplar.graph.location import caller_location, line_text
from pypoplar.graph.operands import check_arguments, check_copy, check_kind, check_one_element, check_tensor, check_writeable
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.notebook import ShownInNotebooks
from pypoplar.types import BOOL, INT, UNSIGNED_INT

__all__ = [
    "Abort",
    "AbortOnCondition",
    "Call",
    "Copy",
    "ErrorProgram",
    "Execute",
    "FloatingPointBehaviour",
    "If",
    "PrintTensor",
    "Program",
    "Repeat",
    "RepeatWhileFalse",
    "RepeatWhileTrue",
    "Sequence",
    "Switch",
    "Sync",
    "SyncType",
    "WriteUndef",
    "cycleCount",
    "cycleStamp",
    "setFloatingPointBehaviour",
    "setSeed",
    "setStochasticRounding",
]


class SyncType(Enum):
    """What a `Sync` waits for: the tiles of each IPU, all IPUs, or all IPUs and the host."""

    INTERNAL = "INTERNAL"
    EXTERNAL = "EXTERNAL"
    GLOBAL = "GLOBAL"


@frozen
class FloatingPointBehaviour:
    """Which floating-point results stop the program: `inv` invalid, `div0` division by zero, `oflo` overflow.

    `esr` (stochastic rounding) and `nanoo` (NaN on overflow of a half) change nothing: halves round to nearest and overflow to
    infinity.
    """

    inv: bool = True
    div0: bool = True
    oflo: bool = True
    esr: bool = True
    nanoo: bool = True


class Program(ShownInNotebooks):
    """The base of all programs; `location` is the user's line that made it."""

    def __init__(self, name: str = "") -> None:
        if not isinstance(name, str):
            raise PoplarTypeError(f"the last argument of {type(self).__name__} is a debug name, got {name!r}")
        self.name = name
        self.location = caller_location()

    def taken(self) -> Program:
        """The program as another one keeps it: unchanged by what is added to this one later."""
        return self

    def tensors(self) -> list[Tensor]:
        """The tensors among its arguments; those of its parts are theirs."""
        return [one for one in _leaves(vars(self).values()) if isinstance(one, Tensor)]

    def parts(self) -> list[Program]:
        """The programs among its arguments."""
        return [one for one in _leaves(vars(self).values()) if isinstance(one, Program)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.name!r}' if self.name else ''} made at {line_text(self.location)}>"


def _leaves(values: Iterable[object]) -> Iterator[object]:
    for one in values:
        if isinstance(one, list | tuple):
            yield from _leaves(one)
        else:
            yield one


class Sequence(Program):
    """Programs one after another: ``Sequence([a, b])``, ``Sequence([a, b], "name")``, ``Sequence()`` and then `add`."""

    def __init__(self, *programs: Any, name: str = "") -> None:
        given = list(programs)
        if given and isinstance(given[-1], str):
            name = given.pop()
        super().__init__(name)
        self.programs: list[Program] = []
        for one in given:
            for program in [one] if isinstance(one, Program) or not isinstance(one, Iterable) else one:
                self.add(program)

    def add(self, program: Program) -> None:
        """Append a program, as it is now."""
        self.programs.append(_program(program, "Sequence"))

    def flat(self) -> Iterator[Program]:
        """The programs in order, those of sequences within it in their place, however deep."""
        open_ones = [iter(self.programs)]
        while open_ones:
            for one in open_ones[-1]:
                if isinstance(one, Sequence):
                    open_ones.append(iter(one.programs))
                    break
                yield one
            else:
                open_ones.pop()

    def taken(self) -> Sequence:
        kept = copy(self)
        kept.programs = list(self.programs)
        return kept

    def __len__(self) -> int:
        return len(self.programs)

    def __bool__(self) -> bool:
        return True


class Execute(Program):
    """Run a compute set: all its vertices, in one step. `result` (BOOL, one element) takes the AND of what `compute` returns."""

    def __init__(self, computeSet: ComputeSet, result: Tensor | str | None = None, name: str = "") -> None:
        if isinstance(result, str):
            name, result = result, None
        super().__init__(name)
        if not isinstance(computeSet, ComputeSet):
            raise PoplarTypeError(f"Execute takes a ComputeSet, got {computeSet!r}")
        if result is not None:
            check_one_element(result, "the result of Execute", (BOOL,))
            check_writeable(result, "Execute cannot put its result into")
        self.compute_set = computeSet
        self.result = result


class Copy(Program):
    """Copy elements in flattened order: tensor to tensor, stream to tensor, tensor to stream, or a remote buffer's rows.

    Counts and types of elements must agree, shapes need not. ``Copy(buffer, tensor, offset)`` and ``Copy(tensor, buffer, offset)``
    transfer the rows that the integer tensor `offset` names, one of its elements for each row; without it, row 0.
    `TensorWriteError` if the destination holds a constant or an element twice, or an element at another position than the source.
    """

    def __init__(
        self,
        source: Tensor | DataStream | RemoteBuffer,
        destination: Tensor | DataStream | RemoteBuffer,
        offset: Tensor | bool | str | None = None,
        name: str = "",
    ) -> None:
        if isinstance(offset, str):
            name, offset = offset, None
        self.optimise_memory = offset is True and not (isinstance(source, Tensor) and isinstance(destination, Tensor))
        if isinstance(offset, bool):  # dontOutline of a Copy between tensors changes nothing here
            offset = None
        super().__init__(name)
        self.source = source
        self.destination = destination
        self.offset = offset
        if isinstance(source, Tensor) and isinstance(destination, Tensor):
            if offset is not None:
                raise PoplarTypeError("a Copy between tensors takes no offset")
            check_copy(source, destination)
        elif isinstance(source, DataStream | RemoteBuffer) and isinstance(destination, Tensor):
            self._check_transfer(source, destination, "to device")
            check_writeable(destination, "cannot copy to")
        elif isinstance(source, Tensor) and isinstance(destination, DataStream | RemoteBuffer):
            self._check_transfer(destination, source, "to host")
        else:
            raise PoplarTypeError(
                f"Copy goes between tensors, or between a tensor and a stream or remote buffer, got {source!r} and {destination!r}"
            )

    def _check_transfer(self, other: DataStream | RemoteBuffer, tensor: Tensor, direction: str) -> None:
        elements = other.numElements()
        if isinstance(other, RemoteBuffer):
            if self.offset is not None:
                if not isinstance(self.offset, Tensor):
                    raise PoplarTypeError(
                        f"the offset into {other!r} is a tensor with row numbers, got {self.offset!r}; see graph.addConstant"
                    )
                check_kind(self.offset, "the offset into a remote buffer", (INT, UNSIGNED_INT))
                elements *= self.offset.numElements()
        elif self.offset is not None:
            raise PoplarTypeError("a Copy of a stream takes no offset")
        elif other.direction != direction:
            raise PoplarTypeError(f"{other!r} goes {other.direction} only; a Copy {direction} needs a stream of that direction")
        if elements != tensor.numElements():
            raise TensorShapeError(f"{other!r} transfers {elements} elements, but {tensor._described()} has {tensor.numElements()}")
        if other.elementType() is not tensor.elementType():
            raise PoplarTypeError(
                f"{other!r} is of type {other.elementType()!r}, but {tensor._described()} is of type {tensor.elementType()!r}"
            )


class Repeat(Program):
    """Run a program `count` times."""

    def __init__(self, count: int, body: Program, name: str = "") -> None:
        super().__init__(name)
        try:
            self.count = operator.index(count)
        except TypeError:
            raise PoplarTypeError(f"Repeat takes a whole number known when the program is built, got {count!r}") from None
        if not 0 <= self.count < 1 << 63:
            raise ControlProgramError(f"Repeat takes a count of at least 0 and less than 2**63, got {count}")
        self.body = _program(body, "Repeat")


class _While(Program):
    def __init__(self, condition: Program, predicate: Tensor, body: Program, name: str = "") -> None:
        super().__init__(name)
        kind = type(self).__name__
        self.condition = _program(condition, kind)
        self.predicate = check_one_element(predicate, f"the predicate of {kind}", None)
        self.body = _program(body, kind)


class RepeatWhileTrue(_While):
    """Run `condition`; while `predicate` (an integer or BOOL of one element) is not zero then, run `body` and `condition` again."""


class RepeatWhileFalse(_While):
    """Run `condition`; while `predicate` (an integer or BOOL of one element) is zero then, run `body` and `condition` again."""


class If(Program):
    """Run `then` if `predicate` (an integer or BOOL of one element) is not zero, else `otherwise`."""

    def __init__(self, predicate: Tensor, then: Program, otherwise: Program | None = None, name: str = "") -> None:
        super().__init__(name)
        self.predicate = check_one_element(predicate, "the predicate of If", None)
        self.then = _program(then, "If")
        self.otherwise = Sequence() if otherwise is None else _program(otherwise, "If")


class Switch(Program):
    """Run the case whose value `index` (INT or UNSIGNED_INT, one element) has; else `default`, or nothing if there is none.

    ``Switch(index, [(0, a), (1, b)], default)``; cases may also be added later with `add`, before the Switch is put into a program.
    """

    def __init__(
        self, index: Tensor, cases: Iterable[tuple[int, Program]] = (), default: Program | None = None, name: str = ""
    ) -> None:
        super().__init__(name)
        self.index = check_one_element(index, "the index of Switch", (INT, UNSIGNED_INT))
        self.cases: list[tuple[int, Program]] = []
        self.default = None if default is None else _program(default, "Switch")
        for value, program in cases.items() if isinstance(cases, dict) else cases:
            self.add(value, program)

    def add(self, value: int, program: Program) -> None:
        """Add a case. `ControlProgramError` if there is one for that value, or if the index cannot have it."""
        try:
            number = operator.index(value)
        except TypeError:
            raise PoplarTypeError(f"a case of Switch has a whole number, got {value!r}") from None
        low = -(1 << 31) if self.index.elementType() is INT else 0
        if not low <= number < low + (1 << 32):
            raise ControlProgramError(f"Switch cannot have a case {number}: its index is {self.index.elementType()!r}")
        if any(number == known for known, _ in self.cases):
            raise ControlProgramError(f"Switch has a case {number} already")
        self.cases.append((number, _program(program, "Switch")))

    def taken(self) -> Switch:
        kept = copy(self)
        kept.cases = list(self.cases)
        return kept


class Call(Program):
    """Run a function of the graph, or call a function of the host with tensors for its inputs and outputs."""

    def __init__(
        self, function: Function | HostFunction, inputs: Iterable[Tensor] = (), outputs: Iterable[Tensor] = (), name: str = ""
    ) -> None:
        super().__init__(name)
        self.function = function
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        if isinstance(function, Function):
            if self.inputs or self.outputs:
                raise PoplarTypeError("Call of a function of the graph takes no tensors: its program names them")
        elif isinstance(function, HostFunction):
            what = f"host function {function.handle()!r}"
            check_arguments(what, self.inputs, function.inputs, written=False)
            check_arguments(what, self.outputs, function.outputs, written=True)
        else:
            raise PoplarTypeError(f"Call takes what graph.addFunction or graph.addHostFunction gave, got {function!r}")


class PrintTensor(Program):
    """Print a tensor's values: ``PrintTensor("title", tensor)`` or ``PrintTensor(tensor)``."""

    def __init__(self, title: str | Tensor, tensor: Tensor | None = None, name: str = "") -> None:
        super().__init__(name)
        if isinstance(title, Tensor):
            given: Tensor | None = title
            title = title.getDebugStr() if tensor is None else str(tensor)  # PrintTensor(tensor, "title") is understood too
        else:
            given = tensor
        self.title = title
        self.tensor = check_tensor(given, "PrintTensor")


class WriteUndef(Program):
    """Make a tensor's values undefined: what it held is not needed any more."""

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        super().__init__(name)
        self.tensor = check_tensor(tensor, "WriteUndef")
        check_writeable(tensor, "WriteUndef cannot write to")


class Sync(Program):
    """Wait until all tiles (and IPUs, and the host) have come here."""

    def __init__(self, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.type = _sync_type(type)


class Abort(Program):
    """Stop the run with `ApplicationRuntimeError` and a message."""

    def __init__(self, message: str = "", name: str = "") -> None:
        super().__init__(name)
        self.message = message


class AbortOnCondition(Program):
    """`Abort` if `predicate` (an integer or BOOL of one element) is not zero."""

    def __init__(self, predicate: Tensor, message: str = "", name: str = "") -> None:
        super().__init__(name)
        self.predicate = check_one_element(predicate, "the predicate of AbortOnCondition", None)
        self.message = message


class ErrorProgram(Program):
    """Stop the run with a message and the values of a tensor."""

    def __init__(self, message: str, tensor: Tensor, name: str = "") -> None:
        super().__init__(name)
        self.message = message
        self.tensor = check_tensor(tensor, "ErrorProgram")


class CycleCount(Program):
    """Run `body` and put the cycles it took into `result`; see `cycleCount`."""

    def __init__(self, body: Program, result: Tensor, tile: int, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.body, self.result, self.tile, self.type = body, result, tile, type


class CycleStamp(Program):
    """Put the cycles since the run began into `result`; see `cycleStamp`."""

    def __init__(self, result: Tensor, tile: int, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.result, self.tile, self.type = result, tile, type


class SetFloatingPointBehaviour(Program):
    """Set the floating-point behaviour of all tiles; see `setFloatingPointBehaviour`."""

    def __init__(self, behaviour: FloatingPointBehaviour, name: str = "") -> None:
        super().__init__(name)
        self.behaviour = behaviour


class SetStochasticRounding(Program):
    """Turn stochastic rounding on or off; see `setStochasticRounding`."""

    def __init__(self, enabled: bool, name: str = "") -> None:
        super().__init__(name)
        self.enabled = enabled


class SetSeed(Program):
    """Seed the random numbers of all tiles; see `setSeed`."""

    def __init__(self, seed: Tensor, modifier: int, name: str = "") -> None:
        super().__init__(name)
        self.seed, self.modifier = seed, modifier


def cycleCount(graph: Graph, sequence: Sequence, tile: int, syncType: SyncType = SyncType.INTERNAL, name: str = "") -> Tensor:
    """Make `sequence`, as it is now, count its cycles; the answer is UNSIGNED_INT [2] on `tile`, low and high word.

    Steps added to the sequence afterwards are not counted.
    """
    _check_sequence(sequence, "cycleCount")
    result = _cycles_variable(graph, tile, name or "cycleCount")
    sequence.programs = [CycleCount(sequence.taken(), result, operator.index(tile), _sync_type(syncType), name)]
    return result


def cycleStamp(graph: Graph, sequence: Sequence, tile: int, syncType: SyncType = SyncType.INTERNAL, name: str = "") -> Tensor:
    """Append a step that notes the cycles since the run began; the answer is UNSIGNED_INT [2] on `tile`, low and high word."""
    _check_sequence(sequence, "cycleStamp")
    result = _cycles_variable(graph, tile, name or "cycleStamp")
    sequence.add(CycleStamp(result, operator.index(tile), _sync_type(syncType), name))
    return result


def _cycles_variable(graph: Graph, tile: int, name: str) -> Tensor:
    result = graph.addVariable(UNSIGNED_INT, [2], name)
    graph.setTileMapping(result, tile)
    return result


def setFloatingPointBehaviour(graph: Graph, sequence: Sequence, behaviour: FloatingPointBehaviour, name: str = "") -> None:
    """Append a step that sets which floating-point results stop the program from then on."""
    if not isinstance(behaviour, FloatingPointBehaviour):
        raise PoplarTypeError(f"expected a FloatingPointBehaviour, got {behaviour!r}")
    _check_sequence(sequence, "setFloatingPointBehaviour")
    sequence.add(SetFloatingPointBehaviour(behaviour, name))


def setStochasticRounding(graph: Graph, sequence: Sequence, enable: bool, name: str = "") -> None:
    """Append a step that turns stochastic rounding of halves on or off."""
    _check_sequence(sequence, "setStochasticRounding")
    sequence.add(SetStochasticRounding(bool(enable), name))


def setSeed(graph: Graph, masterSeed: Tensor, seedModifier: int, sequence: Sequence, name: str = "") -> None:
    """Append a step that seeds the random numbers of every tile from `masterSeed` (UNSIGNED_INT [2]) and `seedModifier`."""
    check_kind(masterSeed, "the seed of setSeed", (UNSIGNED_INT,))
    if masterSeed.numElements() != 2:
        raise TensorShapeError(f"the seed of setSeed has 2 elements, got {masterSeed._described()}")
    _check_sequence(sequence, "setSeed")
    sequence.add(SetSeed(masterSeed, operator.index(seedModifier), name))


# Checks of arguments


def _program(program: Any, what: str) -> Program:
    if isinstance(program, Program):
        return program.taken()
    hint = "; Execute(computeSet) is a program" if isinstance(program, ComputeSet) else ""
    raise PoplarTypeError(f"{what} takes programs, got {program!r}{hint}")


def _check_sequence(program: Any, what: str) -> None:
    if not isinstance(program, Sequence):
        raise PoplarTypeError(f"{what} takes the Sequence that it adds to, got {program!r}")


def _sync_type(type: Any) -> SyncType:
    if not isinstance(type, SyncType):
        raise PoplarTypeError(f"expected a SyncType, got {type!r}")
    return type
