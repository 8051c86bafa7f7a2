"""What a device operation is: one row, from which both engines, the prices, the translator and the documents take what they need.

A row stands for an operation on one register type or on several that it treats alike: `add` on FLOAT and HALF is one row. It
is checked when it is registered (`pypoplar.codelet.operations.table`): a row that leaves something out is refused by name.

Prices are worker issue slots. Each has the mark of its source (`MARKS`). What the figures mean, and what beside operations has a
price, is in `pypoplar.codelet.cost.scalar_prices`; what counts as a floating-point operation in `pypoplar.codelet.ir.flops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import field, frozen

from pypoplar.codelet.operations.registers import Number
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode

MARKS: Mapping[str, str] = {
    "D": "vendor documentation",
    "S": "a constant or formula in PopLibs' source",
    "M": "measured and published",
    "I": "inferred",
}
"""The sources of figures."""
ARCHITECTURES = ("ipu1", "ipu2", "cpu")
"""What prices are for: `Target.architecture`. The published sources do not tell these apart."""

Meaning = Callable[..., Number]


class Emitter(Protocol):
    """What a recipe for LLVM works with.

    Values are LLVM's: ``float`` for FLOAT, and for HALF as the float32 of the same value, ``i32``, ``i64`` and ``i1``; or vectors
    of these, with a lane for each of several vertices, where the row says so (`lanes`).
    """

    @property
    def builder(self) -> Any:
        """llvmlite's, where the operation is to be written."""

    @property
    def type(self) -> str:
        """What T is, or the result's type in an operation without T; for a fault, the last argument's type."""

    @property
    def width(self) -> int:
        """Bits of `type`, an integer type."""

    @property
    def signed(self) -> bool:
        """Whether `type` is a signed integer type."""

    @property
    def double(self) -> Any:
        """LLVM's type of float64."""

    def register(self, type: str, like: Any) -> Any:
        """LLVM's type for a register type, with the lanes of a value."""

    def integer(self, width: int, like: Any) -> Any:
        """LLVM's integer type of so many bits, with the lanes of a value."""

    def constant(self, like: Any, value: float) -> Any:
        """A number of the type that a value has, the same in all its lanes."""

    def flag(self, value: bool) -> Any:
        """An ``i1``."""

    def intrinsic(self, name: str, *arguments: Any) -> Any:
        """Call an intrinsic of LLVM that is overloaded on the type of its first argument."""

    def library(self, name: str, *arguments: Any) -> Any:
        """Call a float64 function of the C library, one that the row names, with float64 values."""

    def saturated(self, value: Any, type: str) -> Any:
        """A float32 as an integer of a register type: cut, held at the ends of the range; NaN gives 0."""

    def widened(self, value: Any) -> Any:
        """A float32 as float64."""

    def rounded(self, value: Any, type: str = "") -> Any:
        """A float32 rounded to a float type, by default `type`."""

    def narrowed(self, value: Any, type: str = "") -> Any:
        """A float64 rounded once to a float type, by default `type`."""

    def half_bits(self, value: Any) -> Any:
        """A HALF's 16 bits, an ``i16``."""

    def of_half_bits(self, bits: Any) -> Any:
        """The HALF of 16 bits, an ``i16``."""


Recipe = Callable[..., Any]  # of an `Emitter` and the arguments' values; gives the result's


@frozen
class ByType:
    """A meaning that differs from type to type: `of` gives that for a register type."""

    of: Callable[[str], Meaning]


@frozen
class IssueSlots:
    """A price of some of a row's types, on some architectures. A software function is a call: no hardware repeat can hold it.

    An instruction may take several elements at once, of a pair of registers: `lanes` of them for the same price.
    """

    types: tuple[str, ...]
    slots: int
    mark: str
    software: bool = False
    architectures: tuple[str, ...] = ARCHITECTURES
    lanes: int = 1


def slots(types: str, slots: int, mark: str, *, software: bool = False, lanes: int = 1) -> IssueSlots:
    """A price on every architecture."""
    return IssueSlots(tuple(types.split()), slots, mark, software, lanes=lanes)


@frozen
class Flops:
    """Floating-point operations of an element, with their mark."""

    flops: int
    mark: str


NO_FLOPS = Flops(0, "S")  # operations on integers are none, whatever they do


@frozen
class OperandFault:
    """When an operation is an error: a condition on its last argument, an integer, and the fault's code.

    The condition stands here twice, as a row's meaning does: in Python, and as it is written for LLVM, where it gives an ``i1``.
    What is recorded of a fault is the last argument, and the bound: the width for a shift, and else 0.
    """

    code: FaultCode
    bound: int
    test: Callable[[int], bool]
    llvm: Recipe

    def __call__(self, *arguments: int) -> int:
        """The fault's code, or `NO_FAULT`."""
        return self.code if self.test(arguments[-1]) else NO_FAULT


@frozen(kw_only=True, eq=False)
class DeviceOperation:
    """A row.

    The signature names arguments and result by register types; ``T`` is each of `types` in turn, and then an operation's full
    name ends in it: ``add_f32``. ``f32[]`` is a vector and ``f32[][]`` the rows of a list; operations on these
    are rows of another kind, `VectorOperation`, and using one of this kind is refused.
    """

    name: str
    signature: str  # "T T -> T"
    types: tuple[str, ...] = ()  # what T may be; () for an operation without T
    meaning: Meaning | ByType | None = None  # of Python's numbers; its result is then rounded once, or wrapped
    exact: bool = False  # whether the meaning's result is one of the result's type as it is
    llvm: Recipe | None = None
    lanes: tuple[str, ...] = ()  # the types for which the recipe takes vectors as it takes single values
    library: tuple[str, ...] = ()  # functions of the C library that it calls
    prices: tuple[IssueSlots, ...] = ()
    flops: Flops | None = None
    calls: tuple[str, ...] = ()  # how users write it: "+", "-x", "abs", "math.exp", "ipu.exp"; none for what only we write
    words: Mapping[str, str] = field(factory=dict)  # what is said where it is used on another type, by type; {type} is its name
    fault: Callable[[str], OperandFault | None] | None = None  # by type: operands that are errors
    pole: tuple[int, float] | None = None  # which argument has which value where an infinite result is a division by zero


@frozen(eq=False)
class TypedOperation:
    """An operation with its types fixed, as the typed form names it."""

    name: str  # "add_f32"
    row: DeviceOperation
    type: str  # what T is; "" where there is none
    arguments: tuple[str, ...]
    result: str
    compute: Meaning  # the meaning, rounded: Python's numbers in, a number of the result's type out
    fault: OperandFault | None
    number: int  # of its registration from outside; 0 for ours
    unrounded: Meaning | None = None  # where it rounds to a half: the float32 that is rounded to nearest, or at random

    @property
    def rounds_to_half(self) -> bool:
        """Whether its result is a half that has been rounded."""
        return self.unrounded is not None

    @property
    def flops(self) -> int:
        """Floating-point operations of one execution."""
        assert self.row.flops is not None
        return self.row.flops.flops

    @property
    def has_lanes(self) -> bool:
        """Whether it may be written for vectors as it is for single values."""
        return (self.type or self.arguments[0]) in self.row.lanes

    def price(self, architecture: str) -> IssueSlots:
        """What it costs; `LookupError` where nobody has said."""
        for price in self.row.prices:
            if architecture in price.architectures and (not self.type or self.type in price.types):
                return price
        raise LookupError(f"device operation {self.name} has no price for architecture '{architecture}'")
