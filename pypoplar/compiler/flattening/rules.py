"""What a rule is: how programs of one kind are flattened to rows of the control program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import isgeneratorfunction
from typing import Any, TypeAlias

from attrs import frozen

from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.errors import PoplarTypeError
from pypoplar.program.base import Program


@frozen
class Leaf:
    """Appends the rows of a program without parts.

    A program is a node of the report's program tree unless it `is_steps`: then the steps of its rows stand in its place.
    """

    flatten: Callable[[Flattening, Any], None]
    is_steps: bool = False

    def __attrs_post_init__(self) -> None:
        if isgeneratorfunction(self.flatten):
            raise PoplarTypeError(
                f"the rule {self.flatten.__qualname__} yields, so it is Around: nothing of it would run as a Leaf"
            )


@frozen
class Around:
    """Appends the rows of a program around those of its parts: it yields each part, in order, where the part's rows belong."""

    flatten: Callable[[Flattening, Any, tuple[Line, ...]], Iterator[Line]]


Rule: TypeAlias = Leaf | Around
Rules: TypeAlias = Mapping[type[Program], Rule]
