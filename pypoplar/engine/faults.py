"""Turns the fault of a vertex into the error that the user sees."""

from __future__ import annotations

import linecache

from attrs import frozen

from pypoplar.codelet.ir.typed import TypedCodelet
from pypoplar.errors import (
    CodeletArithmeticError,
    CodeletIndexError,
    CodeletRuntimeError,
    CycleLimitError,
    UninitialisedReadError,
)
from pypoplar.executable.executable import Executable


@frozen
class Fault:
    """The first fault of a step, by the lowest vertex: codes and values as `pypoplar.codelet.llvm.codelet_code` defines them."""

    vertex: int
    code: int
    where: int
    value: int
    bound: int
    codelet: int
    step: int


KINDS: dict[int, type[CodeletRuntimeError]] = {
    1: CodeletIndexError,
    2: CodeletArithmeticError,
    3: CodeletArithmeticError,
    4: CodeletArithmeticError,
    5: CodeletArithmeticError,
    6: CodeletRuntimeError,
    7: CycleLimitError,
    8: CodeletArithmeticError,
    9: CodeletArithmeticError,
    10: CodeletArithmeticError,
    11: UninitialisedReadError,
    12: CodeletIndexError,
    13: CodeletIndexError,
}


def _what(fault: Fault, codelet: TypedCodelet, cycle_limit: int) -> str:
    value, bound = fault.value, fault.bound
    texts = {
        1: f"index {value} is out of range for a length of {bound}",
        2: "integer division by zero",
        3: f"shift by {value} is outside the width of the type",
        4: f"integer power with the negative exponent {value}",
        5: "the step of range() is zero",
        7: f"the vertex ran longer than the cycle limit of {cycle_limit} (option pypoplar.cycle_limit)",
        8: "invalid floating-point operation (its result is NaN)",
        9: "floating-point overflow",
        10: "floating-point division by zero",
        11: f"element {value} is read, but nothing has written it (option pypoplar.uninitialised)",
        12: f"a slice bound {value} is out of range for a length of {bound}",
        13: f"row {value} is out of range for a list of {bound} rows",
    }
    if fault.code == 6:
        return f"check failed: {codelet.texts[value]}"
    return texts[fault.code]


def fault_error(executable: Executable, fault: Fault) -> CodeletRuntimeError:
    """The error to raise for a fault: it names vertex, tile, compute set, and the user's line."""
    codelet = executable.codelets[fault.codelet].typed
    place = codelet.locations[fault.where]
    names = executable.vertex_names
    file, line, _ = names.locations[int(names.location[fault.vertex])]
    source = linecache.getline(place.file, place.line).strip()
    shown = f"\n    {source}" if source else ""
    what = _what(fault, codelet, executable.options.cycle_limit)
    return KINDS[fault.code](
        f"{place.file}:{place.line}: {codelet.name}.{place.function}: {what}{shown}\n"
        f"  vertex {fault.vertex} on tile {int(names.tile[fault.vertex])} in compute set "
        f"{executable.steps[fault.step].name!r}, added at {file}:{line}"
    )
