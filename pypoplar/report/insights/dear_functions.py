"""Lines that call functions of software, which take dozens of slots or thousands each time, and what to write for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.report.execution import Execution
from pypoplar.report.insights.insight import told_line
from pypoplar.report.line_profile import LineCost

SUBROUTINE = 30  # slots: from so many on a line has a function of software
DIVISION = 100  # a division with a remainder, by a number that no code names
REMAINDER = (
    "divides with a remainder, which is a subroutine of hundreds of slots each time. A number that the code names takes a product"
    " with its reciprocal, a power of two one slot; for a power of two that it does not name, write `&` and `>>`; or count the"
    " remainder along with the loop."
)


@frozen
class DearFunction:
    """A function of software: how it is called, its prices for floats and halves, what to write for it, and that one's slots."""

    called: str
    price: int
    half: int
    instead: str
    slots: int


_POLYNOMIAL = "on a bounded interval a polynomial, or a quotient of two, takes about 25 slots (PopLibs has one for halves)"
_POWER = "a power of a positive number is `math.exp(b * math.log(a))`, a whole one products, and `math.sqrt` and `ipu.rsqrt` roots"
_ERROR = (
    "an approximation with one `math.exp` (Abramowitz and Stegun 7.1.26) takes about 27 slots, and 16 in a loop on vectors, which"
    " it lets the loop become if the sign is `min(max(x * 1e30, -1.0), 1.0)` and no branch"
)
FUNCTIONS: Mapping[str, DearFunction] = {
    "sin": DearFunction("math.sin", 2300, 25, f"{_POLYNOMIAL}; angles that grow by equal steps are a rotation, four products", 25),
    "cos": DearFunction("math.cos", 2300, 25, f"{_POLYNOMIAL}; angles that grow by equal steps are a rotation, four products", 25),
    "tan": DearFunction("math.tan", 5100, 5700, _POLYNOMIAL, 25),
    "asin": DearFunction("math.asin", 102, 102, _POLYNOMIAL, 25),
    "acos": DearFunction("math.acos", 102, 102, _POLYNOMIAL, 25),
    "atan": DearFunction("math.atan", 102, 102, _POLYNOMIAL, 25),
    "atan2": DearFunction("math.atan2", 136, 145, _POLYNOMIAL, 30),
    "pow": DearFunction("math.pow", 312, 325, _POWER, 10),
    "fmod": DearFunction("math.fmod", 66, 75, "`x - y * math.trunc(x / y)` takes 6 slots, where the quotient is not large", 6),
    "erf": DearFunction("math.erf", 41, 13, _ERROR, 15),
    "erfc": DearFunction("math.erfc", 41, 13, _ERROR, 15),
}
_CALLS = re.compile(rf"\b({'|'.join(sorted(FUNCTIONS, key=len, reverse=True))})\s*\(")
_COMMENT = re.compile(r"#.*")


@frozen
class DearLine:
    """A line that calls functions of software: their names, none if it divides, and the slots of one execution."""

    cost: LineCost
    slots: int
    names: Sequence[str] = ()

    @property
    def saved(self) -> int:
        """Slots of its bound that another way to write it could save."""
        bound = self.cost.bound or 0
        left = sum(FUNCTIONS[name].slots for name in self.names)
        return min(bound, self.cost.slots * max(0, (self.price or self.slots) - left) // self.slots)

    @property
    def price(self) -> int:
        """What its functions take of its slots; 0 where it is not known, as of halves."""
        price = sum(FUNCTIONS[name].price for name in self.names)
        return price if price <= self.slots else 0

    def told(self, dearest: LineCost | None) -> str:
        """What it does and what to write, as advice; `dearest` is the line that the text before it names."""
        this = self.cost == dearest
        if not self.names:
            return f"{'This line' if this else f'In {told_line(self.cost.source)} it'} {REMAINDER}"
        functions = [FUNCTIONS[name] for name in self.names]
        place = "This line" if this else f"L{told_line(self.cost.source)[1:]}"
        calls = " and ".join(function.called for function in functions)
        what = "a function" if len(functions) == 1 else "functions"
        of_it = f", {self.price:,} of them for {'it' if len(functions) == 1 else 'these'}" if self.price else ""
        text = f"{place} calls {calls}, {what} of software: it takes {self.slots:,} slots each time{of_it}."
        text += " Write something else for it:"
        return f"{text} {'; '.join(dict.fromkeys(function.instead for function in functions))}."


def dear_operation(vertex_type: str) -> str:
    """What is said of a vertex type of a library's whose operation on floats computes functions of software; empty of others.

    Its name has the operation, as ``popops::Map<mul(_1,sin(_1)),float>`` does.
    """
    names = list(dict.fromkeys(_CALLS.findall(vertex_type))) if vertex_type.endswith(",float>") else []
    if not names:
        return ""
    functions = [FUNCTIONS[name] for name in names]
    many = [f"{name} {function.price:,}" for name, function in zip(names, functions, strict=True)]
    text = (
        f"It computes {'a function' if len(names) == 1 else 'functions'} of software, in slots of each element: {', '.join(many)}."
    )
    cheap = [f"{name} {one.half:,}" for name, one in zip(names, functions, strict=True) if one.half < one.price]
    text += f" In half, {' and '.join(cheap)}." if cheap else " In half it takes no less."
    other = [one.instead for one in functions if one.instead.startswith(_POLYNOMIAL)]
    return f"{text} Or map something else: {_POLYNOMIAL}." if other else text


def dear_lines(execution: Execution, name: str) -> list[DearLine]:
    """The lines of a vertex type that ran and call functions of software, those that could save the most first."""
    lines = execution.lines
    if lines is None or name not in lines.vertex_types:
        return []
    (text,) = (text for text in lines.texts if text.vertex_type == name)
    most = [0] * len(text.lines)  # slots of one execution
    for part in (part for block in text.blocks for part in block):
        most[part.line] = max(most[part.line], part.slots)
    costs = zip(lines.lines(name), most, strict=True)
    found = (_dear(cost, slots) for cost, slots in costs if cost.slots and slots >= SUBROUTINE)
    return sorted((line for line in found if line is not None), key=lambda line: -line.saved)


def _dear(cost: LineCost, slots: int) -> DearLine | None:
    code = _COMMENT.sub("", cost.source.text)
    names = dict.fromkeys(_CALLS.findall(code))
    if "**" in code:
        names["pow"] = None
    if names:
        return DearLine(cost, slots, tuple(names))
    return DearLine(cost, slots) if slots >= DIVISION and re.search(r"%|//", code) else None
