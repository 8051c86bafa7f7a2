"""Loops and choices: the operations between two marks go into a program of their own."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar import popops, poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import EndOfBody, EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.program import Copy, If, Repeat

SEED_STEP = 0x9E3779B9  # between the seeds of a loop's rounds
own = torch.ops.poptorch


def _placed(operands: list[Operand]) -> list[Tensor]:
    return [operand.placed() for operand in operands]


def _apart(ctx: EntryContext, sources: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
    """Tensors that do not change while `kept` are written: copies of those that are parts of them."""
    numbers = {number for tensor in kept for number in tensor.variable_numbers()}
    return [
        one if numbers.isdisjoint(one.variable_numbers()) else poputil.duplicate(ctx.graph, one, ctx.program, ctx.name)
        for one in sources
    ]


def _copied(ctx: EntryContext, sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(_apart(ctx, sources, targets), targets, strict=True):
        ctx.program.add(Copy(source, target, name=ctx.name))


def _carried(ctx: EntryContext, given: list[Tensor]) -> list[Tensor]:
    """New tensors with the elements of others."""
    carried = [ctx.place(one.shape(), one.elementType()) for one in given]
    _copied(ctx, given, carried)
    return carried


@lowers(own.start_for_loop.default)
def begin_loop(ctx: EntryContext, inputs: list[Operand]) -> list[Tensor]:
    return _carried(ctx, _placed(inputs))


@lowers(own.end_for_loop.default)
def end_loop(end: EndOfBody, outputs: list[Operand], _: Any, count: int) -> list[Tensor]:
    inside, outside, (body,) = end.inside, end.outside, end.bodies
    _copied(inside, _placed(outputs), body.carried)
    if body.draws:  # every round draws other numbers; behind the loop the seed is what it was
        popops.addInPlace(inside.graph, inside.random_seed().slice(0, 1), SEED_STEP, inside.program, inside.name)
    outside.program.add(Repeat(count, body.program, name=outside.name))
    if body.draws:
        back = -SEED_STEP * count % 2**32
        popops.addInPlace(outside.graph, outside.random_seed().slice(0, 1), back, outside.program, outside.name)
    return body.carried


@lowers(own.start_if_block.default)
def begin_choice(ctx: EntryContext, condition: list[Operand]) -> list[Tensor]:
    return _placed(condition)


@lowers(own.start_else_block.default)
def begin_else(end: EndOfBody, outputs: list[Operand], _: Any) -> list[Tensor]:
    return _carried(end.inside, _placed(outputs))


@lowers(own.end_if_block.default)
def end_choice(end: EndOfBody, outputs: list[Operand], _: Any, condition: list[Operand]) -> list[Tensor]:
    outside, (then, otherwise) = end.outside, end.bodies
    _copied(end.inside, _placed(outputs), otherwise.carried)
    (predicate,) = (outside.tensor_of(operand) for operand in condition)
    outside.program.add(If(predicate.flatten()[0], then.program, otherwise.program, name=outside.name))
    return otherwise.carried
