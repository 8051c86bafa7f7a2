"""Codelets and their blocks: bodies with all kinds of control, what each block costs, and forms without prices."""

from typing import Any

from attrs import evolve

from pypoplar.codelet.ir.block_numbers import numbered
from pypoplar.codelet.ir.typed import Block, For, IfElse, Once, Price, PricedCodelet, TypedCodelet, While
from pypoplar.codelet.ir.walk import walk

FIELDS = "x: InOut[Vector[FLOAT]]\nn: INT"
BODIES = {
    "straight": "self.x[0] = self.x[0] * 2.0 + 1.0",
    "repeat": "for i in range(len(self.x)):\n    self.x[i] *= 2.0",
    "sum": "t = 0.0\nfor v in self.x:\n    t += v\nself.x[0] = t",
    "nested": "t = 0.0\nfor i in range(self.n):\n    for j in range(i):\n        t += self.x[j]\n    self.x[i] = t",
    "branches": "for i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        self.x[i] -= 1\n    else:\n        self.x[i] += 1",
    "break": "for i in range(len(self.x)):\n    if i == self.n:\n        break\n    self.x[i] *= 2.0\nself.x[0] += 1.0",
    "continue": "for i in range(len(self.x)):\n    if i == self.n:\n        continue\n    self.x[i] *= 2.0",
    "while": "i = 0\nwhile i < self.n:\n    self.x[i] += 1.0\n    i += 1\nself.x[0] *= 0.5",
    "return": "for i in range(len(self.x)):\n    if i == self.n:\n        return\n    self.x[i] *= 2.0\nself.x[0] = 3.0",
    "software": "for i in range(self.n):\n    self.x[i] = float(self.n // (i + 1))",
    "leaves": "if self.n > 2:\n    return\nself.x[0] = 1.0\nif self.n > 1:\n    self.x[1] = 2.0\nself.x[2] = 3.0",
}


def blocks_of(codelet: PricedCodelet) -> list[tuple[int, int]]:
    """Slots and bounds by number of the block."""
    blocks: dict[int, tuple[int, int]] = {}
    for statement in walk(numbered(codelet).body):
        if isinstance(statement, Price):
            blocks[statement.block] = (statement.slots, statement.bound)
        elif isinstance(statement, For) and statement.price is not None:
            price = statement.price
            blocks |= {price.block: (price.slots, price.bound), price.block + 1: (price.rest, price.bound_of_rest)}
    return [blocks[number] for number in range(len(blocks))]


def without_prices(block: Block) -> Block:
    bare: list[Any] = []
    for statement in block:
        match statement:
            case Price():
                continue
            case IfElse():
                bare.append(evolve(statement, then=without_prices(statement.then), orelse=without_prices(statement.orelse)))
            case While():
                bare.append(evolve(statement, head=without_prices(statement.head), body=without_prices(statement.body)))
            case For() | Once():
                bare.append(evolve(statement, body=without_prices(statement.body)))
            case _:
                bare.append(statement)
    return tuple(bare)


def bare_form(codelet: PricedCodelet) -> TypedCodelet:
    """A codelet without its prices."""
    names = [field.name for field in TypedCodelet.__attrs_attrs__]
    return TypedCodelet(**{name: getattr(codelet, name) for name in names} | {"body": without_prices(codelet.body)})
