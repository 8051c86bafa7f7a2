"""What a rule is: how programs of one kind are lowered to rows of the control program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.lowering.lowering_state import Lowering
from pypoplar.program.base import Program


@frozen
class Leaf:
    """Appends the rows of a program without parts.

    A program is a node of the report's program tree unless it `is_steps`: then the steps of its rows stand in its place. `announce`
    is called with the programs of the kind in a line of operations, before any of them is lowered.
    """

    lower: Callable[[Lowering, Any], None]
    is_steps: bool = False
    announce: Callable[[Lowering, Sequence[Any]], None] | None = None


@frozen
class Around:
    """Appends the rows of a program around those of its parts: it yields each part, in order, where the part's rows belong."""

    lower: Callable[[Lowering, Any, tuple[Line, ...]], Iterator[Line]]


Rule: TypeAlias = Leaf | Around
Rules: TypeAlias = Mapping[type[Program], Rule]
