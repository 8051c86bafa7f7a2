"""A function in a codelet costs what popops says of the same function, but for what a round of its loop takes beside it."""

import pytest

from pypoplar import FLOAT, HALF
from pypoplar.codelet.operations.device_operation import ARCHITECTURES
from pypoplar.codelet.operations.table import OPERATIONS as DEVICE_OPERATIONS
from pypoplar.popops.elements.element_operations import BINARY, UNARY, ElementOperation
from pypoplar.popops.elements.loop_cycles import loop_round
from pypoplar.types import ElementType

WIDTH = {FLOAT: 2, HALF: 4}  # elements of a vector
WRITTEN = {  # how codelets write what popops has, with its operands in their order
    operand: call
    for operation in DEVICE_OPERATIONS.values()
    for call in operation.row.calls
    for operand in (f"{call}({{a}})", f"{call}({{a}}, {{b}})", f"{{a}} {call} {{b}}", call.replace("x", "{a}", 1))
}
HELPED = {"quotient({a}, {b})": "//", "remainder({a}, {b})": "%"}  # popops cuts, as the machine's functions do, where these floor


def shared() -> list[tuple[ElementOperation, ElementType, str]]:
    """Operations of popops that a codelet has under a name of its own, by type, with the name of the device operation."""
    found = []
    for operation in (*UNARY, *BINARY):
        if operation.relation:  # most of what these take is the store of a BOOL
            continue
        for type in operation.types:
            code = operation.by_type.get(type, operation.code)
            call = HELPED.get(code) or WRITTEN.get(code)
            names = [name for name, one in DEVICE_OPERATIONS.items() if call in one.row.calls and one.type == type.code]
            found += [(operation, type, name) for name in names]
    return found


SHARED = shared()


def test_the_functions_of_both_are_found():
    names = {operation.name for operation, _, _ in SHARED}
    assert {"SIN", "COS", "TAN", "ASIN", "ERF", "EXPONENT", "EXPONENT_MINUS_ONE", "LOGARITHM_ONE_PLUS", "ATAN2", "POWER"} <= names
    assert {"DIVIDE", "REMAINDER", "MULTIPLY", "TANH", "SIGMOID", "SQRT", "RSQRT", "FLOOR", "POPCOUNT"} <= names


@pytest.mark.parametrize(("operation", "type", "name"), SHARED, ids=[name for _, _, name in SHARED])
def test_a_function_costs_in_a_codelet_what_it_costs_in_popops(operation, type, name):
    loop = loop_round(operation.name, type.code, "plain")
    whole = loop.cycles / loop.elements
    for architecture in ARCHITECTURES:
        price = DEVICE_OPERATIONS[name].price(architecture)
        width = WIDTH.get(type, 1)
        slots = price.slots * max(1, width // price.lanes) / width
        beside = 5 if type in WIDTH else 7  # slots of a round that loads, stores and counts
        assert whole - beside <= slots <= whole + 0.5, f"{name}: {slots} slots an element, popops takes {whole}"
