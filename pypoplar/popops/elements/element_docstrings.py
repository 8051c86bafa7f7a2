"""The docstrings of what is made of the table of operations on elements: functions, builders of trees and enums."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from functools import cache

from pypoplar.popops.elements.element_operations import ElementOperation
from pypoplar.types import BOOL, ElementType


def docstring_of_function(row: ElementOperation, place: str, example: str) -> str:
    """What a function does, takes, gives and refuses; `place` is the end of its name, which says where the result goes."""
    where = {"": "as a new tensor", "InPlace": "in the place of A", "WithOutput": "in `out`"}[place]
    result = "; the result is BOOL" if row.relation else ""
    types = listed((BOOL,) if place == "InPlace" and row.relation and BOOL in row.types else row.types)
    stand = (
        "a stands for an element of A, which is" if row.operands == 1 else "a and b stand for elements of A and B, which are both"
    )
    letters = _filled(f"Here {stand} {types}.")
    parts = [f"{_sentence(row.meaning)} for each element, {where}{result}; `prog` is extended.", letters]
    if _never_fits(row, place):
        parts.append("PopLibs has the name; every call is refused, since A cannot hold the result.")
    parts.append(section("Parameters", *_arguments(row, place)))
    if not place:
        mapped = "mapped like an operand, as `createOutputForElementWiseOp` says"
        parts.append(section("Returns", ("Tensor", f"{_like_the_result(row)}; {mapped}.")))
    parts.append(section("Raises", *_errors(row, place)))
    if example:
        parts.append(f"Examples\n--------{example}")
    return "\n\n".join(parts) + "\n"


def section(heading: str, *entries: tuple[str, str]) -> str:
    """A section of a docstring in NumPy's style: entries, each with what it is."""
    texts = (f"{name}\n{textwrap.indent(_filled(text), '    ')}" for name, text in entries)
    return "\n".join([heading, "-" * len(heading), *texts])


@cache  # operations share most sentences, and to break the lines of each anew would take most of the import
def _filled(text: str) -> str:
    return textwrap.fill(text, 120)


def listed(types: tuple[ElementType, ...]) -> str:
    """The names of types: ``INT or UNSIGNED_INT``."""
    *some, last = [type.__name__ for type in types]
    return f"{', '.join(some)} or {last}" if some else last


def _never_fits(row: ElementOperation, place: str) -> bool:
    return place == "InPlace" and row.relation and BOOL not in row.types


def _like_the_result(row: ElementOperation) -> str:
    if row.operands == 1:
        return "Of the shape of A, of type BOOL" if row.relation else "Of the shape and type of A"
    return f"Of the operands' common shape {'and of type BOOL' if row.relation else 'and type'}"


def _arguments(row: ElementOperation, place: str) -> list[tuple[str, str]]:
    options = ("options:", "Those of `map`; of a single operation they change nothing.")
    if row.operands == 1:
        found = [("A:", "A tensor of any shape.")]
    elif place == "InPlace":
        found = [
            ("A:", "A tensor that can be written."),
            ("B:", "A tensor of the type of A, which is broadcast to its shape as NumPy does, or a number of that type."),
        ]
    else:
        found = [("A, B:", "Tensors of one type, whose shapes are broadcast as NumPy does; one may be a number of that type.")]
    if place == "WithOutput":
        found.append(("out:", f"{_like_the_result(row)}; it has tiles."))
    return [*found, options]


def _errors(row: ElementOperation, place: str) -> list[tuple[str, str]]:
    """The errors of `element_call`, with what it asks for."""
    written = "that holds an element twice or a constant"
    refused = {
        "": ["two numbers"],
        "InPlace": ["a B that is not broadcast to the shape of A", f"an A {written}"],
        "WithOutput": ["two numbers", f"an `out` that the result does not fit into, or {written}"],
    }[place]
    if row.operands == 1:
        causes = ["an A of another type", *(one for one in refused[-1:] if place)]
    else:
        shapes = ["shapes without a common one"] if place != "InPlace" else []
        causes = ["other types, and two types", *shapes, *refused]
    number = ", and a number that the type does not have" if row.operands > 1 else ""
    always = _never_fits(row, place)
    found = [
        ("PoplibsError", "Always." if always else f"For {'; for '.join(causes)}."),
        ("PoplarTypeError", f"For what is no tensor of the graph{number}."),
        ("InvalidTileMapping", "If an element of a tensor has no tile."),
    ]
    unknown = f"For {listed(row.in_file)}, unless `popops.addCodelets` was called." if row.in_file else ""
    return [*found, ("UnknownVertexType", unknown)] if unknown else found


def docstring_of_builder(row: ElementOperation) -> str:
    """What a class of PopLibs, a function here, builds: ``Exp(a)``."""
    types, names = listed(row.types), ", ".join("abc"[: row.operands])
    expressions = f"An expression of type {types}" if row.operands == 1 else f"Expressions of one type, {types}"
    condition = ", and c of BOOL" if row.name == "SELECT" else ""
    number = "a number is a constant of the type of what stands beside it"
    parts = [
        f"{_sentence(row.meaning)}.",
        section("Parameters", (f"{names}:", f"{expressions}{condition}; {number}.")),
        section("Returns", ("Expr", f"For a tree that `map` computes; {'BOOL' if row.relation else 'of the type of a'}.")),
        section("Raises", ("PoplarTypeError", "For what is neither an expression nor a number. Types are looked at by `map`.")),
    ]
    return "\n\n".join(parts) + "\n"


def docstring_of_choice(first: str, rows: Iterable[ElementOperation]) -> str:
    """What the members of an enum stand for, behind its first sentence."""
    return f"{first}\n\n{section('Attributes', *((f'{row.name}:', f'{_sentence(row.meaning)}.') for row in rows))}\n"


def _sentence(meaning: str) -> str:
    """With a capital letter, but for a formula such as "a + b": that begins with an operand, not with a word."""
    return meaning if meaning[1] in " ," else meaning[0].upper() + meaning[1:]
