"""What operations of device code cost, in worker issue slots.

The table stands for scalar code as a C++ compiler for the machine makes it. Each row has its mark: **D** vendor
documentation, **S** a constant or formula in PopLibs' source, **M** measured and published, **I** inferred. The published
sources do not tell the architectures apart here, so one table serves all; `ARCHITECTURES` is where another would go.

What the figures mean, where that was a choice:

- Copies, and the wrapping of integers as they are narrowed for a store, cost nothing: registers are renamed, and a store
  takes the low bits.
- An address costs nothing where the index is at hand, for loads and stores step their pointers; arithmetic on the index is
  paid as such.
- A scalar field is loaded and stored at every use, like an element: the compiler may not keep it in a register across stores.
- The length of a vector is in a register: 0. The pointer and length of a row come with one 64-bit load and an address: 2. A
  slice is an addition: 1.
- A branch costs 1, taken or not: once for each `if`, each test of a `while` and each short circuit. break, continue and return
  are the targets of such branches and cost nothing more.
- A counted loop whose body is a straight run, without branches and software functions, is a zero-overhead repeat: 2 to set it
  up, nothing per round. The hardware counts to 4095; longer loops repeat in strips, whose few slots per 4095 rounds are left
  out. Every other counted loop pays 3 per round: add, compare, branch.
- A loop that stores 32-bit integers and runs to a length or a field is not such a repeat: the store may change the bound, which
  the compiler has to load again. It pays 4 per round, as in the published listing of ``data[i] += 1``. A bound in a variable of
  the codelet is not affected.
- A reading of the cycle counter ends a straight run: what comes after it is not in the reading.
- Helper functions are inlined by the C++ compiler as well: a call costs nothing.
- Entry and exit of a vertex: 12, the middle of 10 to 14.
- HALF one by one costs what FLOAT does, but for stores; division, roots and the functions that the machine has only in FLOAT
  add the two conversions. debug_print, print and breakpoint are the simulator's and cost nothing; ipu.check is a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from pypoplar.codelet.ir.operations import SIGNATURES
from pypoplar.codelet.ir.typed import Apply, Block, Check, DebugPrint, HostCall, Length, Load, Row, Slice, Special, Statement, Store

ENTRY_AND_EXIT = 12  # I: 10 to 14
BRANCH = 1  # I
LOOP_START = 2  # I: count and repeat instruction
LOOP_ROUND = 3  # I: add, compare, branch
LOAD = 1  # D S
STORE = 1  # D S
NARROW_STORE = 5  # S: 8 and 16 bits are read, modified and written: about 4 more
ROW = 2  # I
SLICE = 1  # I
ALIASES = ("i32", "u32")  # M: what a store of these writes may be a length or a field
SPECIALS = {"cycle_count": 1, "random_u32": 1, "random_f32": 3}  # I: one instruction; a float is made with two more
NARROW = ("i8", "u8", "i16", "u16", "f16", "bool")


@frozen
class Price:
    """A row of the table: operations (names without their type), register types, slots, mark; a software function is a call."""

    operations: str
    types: str
    slots: int
    mark: str
    software: bool = False


TABLE: tuple[Price, ...] = (
    Price("copy", "f32 f16 i32 u32 i64 u64 bool", 0, "I"),
    Price("wrap_i8 wrap_u8 wrap_i16 wrap_u16", "", 0, "I"),
    Price("add sub mul neg abs min max and or xor invert shift_left shift_right", "i32 u32", 1, "D S"),
    Price("less less_equal equal not_equal", "i32 u32 bool", 1, "D S"),
    Price("and or xor not", "bool", 1, "D S"),
    Price("popcount clz", "i32 u32", 1, "D"),
    Price("floordiv", "i32 u32", 270, "S", software=True),
    Price("mod", "i32 u32", 285, "S", software=True),
    Price("power", "i32 u32", 130, "I", software=True),  # 32 rounds of test, multiply, square, shift
    # 64-bit integers: PopLibs' loop for an addition is 11 an element where the 32-bit one is 7
    Price("add sub neg", "i64 u64", 5, "S"),
    Price("and or xor invert", "i64 u64", 2, "I"),
    Price("less less_equal equal not_equal", "i64 u64", 3, "I"),
    Price("abs min max", "i64 u64", 6, "I"),
    Price("shift_left shift_right", "i64 u64", 6, "I"),
    Price("popcount", "i64 u64", 3, "I"),
    Price("clz", "i64 u64", 4, "I"),
    Price("mul", "i64 u64", 20, "I", software=True),  # four 16-bit wide partial products on each side
    Price("floordiv", "i64 u64", 900, "I", software=True),  # twice the bits, twice the width
    Price("mod", "i64 u64", 930, "I", software=True),
    Price("power", "i64 u64", 1300, "I", software=True),
    Price("add sub mul min max less less_equal equal not_equal", "f32 f16", 1, "S"),
    Price("neg abs fabs copysign isnan isinf isfinite floor ceil trunc round", "f32 f16", 1, "I"),
    Price("div", "f32", 3, "S"),
    Price("sqrt", "f32", 5, "S"),
    Price("rsqrt", "f32", 4, "S"),
    Price("exp exp2", "f32", 3, "S"),
    Price("log log2", "f32", 6, "S"),
    Price("log10", "f32", 7, "I"),
    Price("tanh sigmoid", "f32", 5, "S"),
    Price("div", "f16", 5, "S"),
    Price("sqrt", "f16", 6, "S"),
    Price("rsqrt", "f16", 6, "I"),
    Price("exp exp2 log log2 sigmoid", "f16", 2, "S"),
    Price("tanh", "f16", 1, "S"),
    Price("log10", "f16", 3, "I"),
    Price("sin cos", "f32", 2300, "S", software=True),
    Price("sin cos", "f16", 25, "S", software=True),
    Price("tan", "f32", 5100, "S", software=True),
    Price("tan", "f16", 5102, "I", software=True),
    Price("asin acos", "f32", 102, "S", software=True),
    Price("asin acos", "f16", 104, "I", software=True),
    Price("atan", "f32", 102, "I", software=True),
    Price("atan", "f16", 104, "I", software=True),
    Price("atan2", "f32", 136, "S", software=True),
    Price("atan2", "f16", 138, "I", software=True),
    Price("power pow", "f32", 312, "S", software=True),
    Price("power pow", "f16", 314, "I", software=True),
    Price("fmod", "f32", 66, "S", software=True),
    Price("fmod", "f16", 68, "I", software=True),
    Price("mod", "f32 f16", 70, "I", software=True),  # fmod, and the divisor's sign
    Price("floordiv", "f32 f16", 75, "I", software=True),  # fmod, subtract, divide, round
    Price("erf erfc", "f32", 41, "S", software=True),
    Price("erf erfc", "f16", 43, "I", software=True),
    Price("sinh cosh", "f32 f16", 15, "I", software=True),  # two exponentials and a division
    Price("expm1 log1p", "f32 f16", 40, "I", software=True),
    Price("hypot", "f32 f16", 8, "I"),
    Price("f32_from", "f16", 1, "S"),
    Price("f16_from", "f32", 1, "S"),
    Price("f32_from", "i32 u32 bool", 3, "I"),  # 1, and 2 to cross the register files through memory
    Price("f16_from", "i32 u32 bool", 4, "I"),
    Price("i32_from u32_from", "f32", 3, "I"),
    Price("i32_from u32_from", "f16", 4, "I"),
    Price("i32_from u32_from", "i32 u32 i64 u64 bool", 0, "I"),  # the same bits, or the low half
    Price("i64_from u64_from", "i32 u32 bool", 1, "I"),
    Price("i64_from u64_from", "i64 u64", 0, "I"),
    Price("i64_from u64_from", "f32 f16", 20, "I", software=True),
    Price("f32_from f16_from", "i64 u64", 20, "I", software=True),
    Price("f32_from", "f32", 0, "I"),
    Price("f16_from", "f16", 0, "I"),
    Price("bool_from", "f32 f16 i32 u32", 1, "I"),
    Price("bool_from", "i64 u64", 2, "I"),
    Price("bool_from", "bool", 0, "I"),
)


def _rows(table: Iterable[Price]) -> dict[str, Price]:
    found: dict[str, Price] = {}
    for row in table:
        for operation in row.operations.split():
            for name in [f"{operation}_{one}" for one in row.types.split()] or [operation]:
                if name in found or name not in SIGNATURES:
                    raise ValueError(f"price of {name}: {'twice' if name in found else 'no such operation'}")
                found[name] = row
    return found


ROWS: Mapping[str, Price] = _rows(TABLE)
SLOTS: Mapping[str, tuple[int, str]] = {name: (row.slots, row.mark) for name, row in ROWS.items()}
"""Each operation's slots and mark."""

ARCHITECTURES: Mapping[str, Mapping[str, tuple[int, str]]] = {"ipu1": SLOTS, "ipu2": SLOTS, "bow": SLOTS}


def price_of(statement: Statement) -> int:
    """The slots of one statement of a straight run."""
    match statement:
        case Apply():
            return ROWS[statement.operation].slots
        case Load():
            return LOAD
        case Store():
            return NARROW_STORE if statement.span.element in NARROW else STORE
        case Row():
            return ROW
        case Slice():
            return SLICE
        case Special():
            return SPECIALS[statement.name]
        case Check():
            return BRANCH
    return 0


def round_slots(body: Block, bound: Statement | None) -> int:
    """The slots of a counted loop's round beside those of its body. `bound` has just computed where it ends, if anything has."""
    if not all(straight(one) for one in body):
        return LOOP_ROUND
    stored = any(isinstance(one, Store) and one.span.element in ALIASES for one in body)
    return LOOP_ROUND + LOAD if stored and isinstance(bound, Length | Load) else 0


def straight(statement: Statement) -> bool:
    """Whether a zero-overhead repeat may hold this statement: no branch, no call."""
    if isinstance(statement, Apply):
        return not ROWS[statement.operation].software
    return isinstance(statement, Load | Store | Length | Row | Slice | Special | DebugPrint | HostCall)
