"""Instructions of vectors of the hardware, as the user has written them: ``a, b = ipu.float2(x, y)``.

What is done with the elements of one is an instruction on a pair of auxiliary registers, or on a word of two HALFs, where the
machine has one, and neighbours in memory are loaded and stored together, 8 bytes at once. An element that is not at its place
in a register has to be moved there: a FLOAT that another vector has elsewhere, and any two HALFs that do not come as a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypoplar.codelet.cost.addresses import Address
from pypoplar.codelet.cost.instructions import ALIASES, Instruction, MemoryAccess, Pipe, Register
from pypoplar.codelet.cost.memory_code import address_of
from pypoplar.codelet.cost.numbering import lanes_of
from pypoplar.codelet.cost.selection import Known, Selection
from pypoplar.codelet.cost.straight_code import select
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import Apply, Literal, Load, Store, Straight
from pypoplar.codelet.operations.table import typed_operation

WORD, PAIR = 4, 8  # bytes of a register, and of two


def select_together(selection: Selection, statements: Sequence[Straight]) -> None:
    """Make the instructions of statements that are one on a vector."""
    first = statements[0]
    if isinstance(first, Apply):
        at_once = _lanes(selection, first, statements)
    elif isinstance(first, Load | Store):
        at_once = PAIR // SIZES[first.span.element]
    for begin in range(0, len(statements), max(at_once, 1)):
        part = statements[begin : begin + max(at_once, 1)]
        if len(part) == 1:
            select(selection, part[0])
        elif isinstance(first, Apply):
            _apply(selection, [one for one in part if isinstance(one, Apply)])
        elif isinstance(first, Load):
            _load(selection, [one for one in part if isinstance(one, Load)])
        else:
            _store(selection, [one for one in part if isinstance(one, Store)])


def _lanes(selection: Selection, first: Apply, statements: Sequence[Straight]) -> int:
    """How many elements an instruction takes at once: 1 where what is applied is no instruction on vectors."""
    row = typed_operation(first.operation)
    try:
        price = row.price(selection.architecture)
    except LookupError:
        return 1  # it is refused where it is made one by one
    arguments = [selection.known(argument) for one in statements if isinstance(one, Apply) for argument in one.arguments]
    constant = all(isinstance(argument, Literal) for argument in arguments)
    floats = row.result in ("f32", "f16") and all(type in ("f32", "f16") for type in row.arguments)
    return 1 if constant or price.software or not price.slots or not floats else price.lanes


def _words(type: str, count: int) -> list[int]:
    """The registers that each of some elements takes beyond those before it."""
    per_word = WORD // SIZES[type]
    return [int(lane % per_word == 0) for lane in range(count)]


def _apply(selection: Selection, statements: Sequence[Apply]) -> None:
    row, where = typed_operation(statements[0].operation), statements[0].where
    price = row.price(selection.architecture)
    known = [[selection.known(argument) for argument in one.arguments] for one in statements]
    reads: list[Register] = []
    for position, type in enumerate(row.arguments):
        reads += _operand(selection, [arguments[position] for arguments in known], type, where)
    key = (row.name, "together", *(_key(argument) for arguments in known for argument in arguments))
    instruction = Instruction(row.name, Pipe.AUXILIARY, where, reads=tuple(reads), slots=price.slots, on_vectors=True)
    words = _words(row.result, len(statements))
    whole = selection.numbering.value(key, instruction, Pipe.AUXILIARY, words=sum(words))
    for one, lane in zip(statements, _lanes_of(selection, whole, words), strict=True):
        selection.locals[one.target.name] = lane


def _lanes_of(selection: Selection, whole: Register, words: Sequence[int]) -> list[Register]:
    """The elements of a register, the same ones whenever they are asked for."""
    if whole not in selection.lanes:
        selection.lanes[whole] = lanes_of(whole, words)
    return selection.lanes[whole]


def _operand(selection: Selection, elements: Sequence[Known], type: str, where: int) -> list[Register]:
    """The registers of a vector that is read: as it lies in them, one number for all, or moved into place."""
    first = elements[0]
    if all(one is first or _is_same(one, first) for one in elements):
        register = selection.in_register(first, where, Pipe.AUXILIARY)
        return [] if register is None else [register]
    if isinstance(first, Register) and first.whole is not None:
        begin = first.lane
        if all(
            isinstance(one, Register) and one.whole is first.whole and one.lane == begin + lane for lane, one in enumerate(elements)
        ):
            return [first.whole]
    per_word = WORD // SIZES[type]
    reads: list[Register] = []
    for begin in range(0, len(elements), per_word):
        word = elements[begin : begin + per_word]
        registers = [selection.in_register(one, where, Pipe.AUXILIARY) for one in word]
        held = list(dict.fromkeys(register for register in registers if register is not None))
        if any(_is_elsewhere(one, begin + lane, per_word) for lane, one in enumerate(word)):
            name = "mov" if per_word == 1 else "sort4x16lo"
            key = ("gathered", name, *map(_key, word))
            made = Instruction(name, Pipe.AUXILIARY, where, reads=tuple(held), on_vectors=True)
            held = [selection.numbering.value(key, made, Pipe.AUXILIARY)]
        reads += held
    return reads


def _is_elsewhere(known: Known, lane: int, per_word: int) -> bool:
    """Whether an element has to be moved: it is in another place of a vector, or a HALF that was made alone."""
    if isinstance(known, Literal):
        return False
    if known.whole is not None:
        return known.lane != lane
    return per_word > 1 and not known.sources  # what loops and branches carry has the place that the compiler gives it


def _is_same(one: Known, other: Known) -> bool:
    return isinstance(one, Literal) and isinstance(other, Literal) and _key(one) == _key(other)


def _key(value: Known) -> object:
    return (value.type, repr(value.value)) if isinstance(value, Literal) else value


def _accesses(selection: Selection, statements: Sequence[Load] | Sequence[Store]) -> tuple[list[MemoryAccess], Address, bool]:
    alias = ALIASES[statements[0].span.element]
    found = [address_of(selection, one) for one in statements]
    return [MemoryAccess(alias, address.place) for address, _ in found], *found[0]


def _load(selection: Selection, statements: Sequence[Load]) -> None:
    element, where = statements[0].span.element, statements[0].where
    accesses, address, safe = _accesses(selection, statements)
    words = _words(element, len(statements))
    instruction = Instruction(
        f"ld{WORD * 8 * sum(words)}", Pipe.MAIN, where, reads=address.reads, access=accesses[0], on_vectors=True
    )
    lanes = selection.numbering.load_together(instruction, accesses, Pipe.AUXILIARY, safe=safe, words=words)
    if instruction.result is not None:
        address.serve(instruction)
    for one, lane in zip(statements, lanes, strict=True):
        selection.locals[one.target.name] = lane


def _store(selection: Selection, statements: Sequence[Store]) -> None:
    element, where = statements[0].span.element, statements[0].where
    known = [selection.known(one.value) for one in statements]
    reads = _operand(selection, known, element, where)
    accesses, address, _ = _accesses(selection, statements)
    bits = 8 * SIZES[element] * len(statements)
    instruction = Instruction(
        f"st{bits}", Pipe.MAIN, where, reads=(*address.reads, *reads), access=accesses[0], stores=True, needed=True, on_vectors=True
    )
    values = [one if isinstance(one, Register) and one.file is Pipe.AUXILIARY else None for one in known]
    selection.numbering.store_together(instruction, list(zip(accesses, values, strict=True)))
    address.serve(instruction)
