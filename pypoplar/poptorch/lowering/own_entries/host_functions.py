"""What the host does in the middle of a program: functions of `poptorch.CPU`, and prints."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.program import PrintTensor

PLAIN = (1000, 3, 80, 4, "auto", ", ", "(", ")")  # the layout of `ipu_print_tensor` without arguments: that of PrintTensor


@lowers(torch.ops.poptorch.call_cpu_op.default)
def call_cpu(ctx: EntryContext, inputs: list[Operand], key: str, outputs: str) -> list[Tensor]:
    called = ctx.mark(operators.CALLED) or operators.host_call(key)
    given = [operand.placed() for operand in inputs]
    values = ctx.likes
    results = [ctx.place(list(value.shape), type) for value, type in zip(values, ctx.types, strict=True)]
    likes = [operand.like for operand in inputs]

    def run(*arrays: npt.NDArray[Any]) -> None:
        taken = [
            torch.from_numpy(np.array(array)).reshape(tuple(like.shape)).to(like.dtype)
            for array, like in zip(arrays, likes, strict=False)
        ]
        for target, got, like in zip(arrays[len(likes) :], called.results(taken), values, strict=True):
            if got.shape != like.shape:
                raise ValueError(f"poptorch.CPU({called.ID!r}) gave shape {tuple(got.shape)}; for zeros it was {tuple(like.shape)}")
            target.reshape(-1)[...] = got.detach().numpy().reshape(-1).astype(target.dtype)

    ctx.call(f"cpu/{key}", given, results, run)
    return results


@lowers(torch.ops.poptorch.ipu_print_tensor.default)
def print_tensor(ctx: EntryContext, x: Operand, title: str, gradient: bool, *layout: Any) -> Tensor:
    tensor = x.placed()
    if layout == PLAIN and tensor.numElements() <= PLAIN[0]:
        ctx.program.add(PrintTensor(title, tensor, name=ctx.name))
        return tensor
    shape = tensor.shape()

    def write(array: npt.NDArray[Any]) -> None:
        heading = f"{title}: " if title else ""
        sys.stderr.write(f"{heading}{formatted(array.reshape(shape), *layout)}\n")

    ctx.call(f"print/{title}", [tensor], [], write)
    return tensor


def formatted(
    array: npt.NDArray[Any],
    threshold: int,
    edges: int,
    width: int,
    digits: int,
    floats: str,
    separator: str,
    opened: str,
    closed: str,
) -> str:
    """The text of an array: NumPy's, with the layout of `ipu_print_tensor`."""
    per_element: Any = {"scientific": lambda value: f"{value:.{digits}e}", "fixed": lambda value: f"{value:.{digits}f}"}.get(floats)
    text = np.array2string(
        array,
        threshold=threshold or sys.maxsize,
        edgeitems=edges,
        max_line_width=width or sys.maxsize,
        precision=digits or None,
        floatmode="maxprec" if floats == "none" or not digits else "maxprec_equal",
        separator=separator,
        formatter={"float_kind": per_element} if per_element else None,
    )
    return text.replace("[", opened).replace("]", closed)


@lowers(torch.ops.poptorch.nop.default)
def nop(ctx: EntryContext, x: Operand) -> Tensor:
    return x.placed()
