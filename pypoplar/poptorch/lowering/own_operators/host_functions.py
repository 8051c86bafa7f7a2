"""What the host does in the middle of a program: functions of `poptorch.CPU`, and prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import fx

from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.program import Call, PrintTensor

PLAIN = (1000, 3, 80, 4, "auto", ", ", "(", ")")  # the layout of `ipu_print_tensor` without arguments: that of PrintTensor


def call_host(at: GraphLowering, handle: str, inputs: list[Tensor], outputs: list[Tensor], function: Callable[..., None]) -> None:
    """Call a function of the host with arrays, flat, of the inputs, and of the outputs to fill."""
    handle = f"{handle}/{len(at.host_functions)}"
    signature = [[(one.elementType(), one.numElements()) for one in several] for several in (inputs, outputs)]
    link = at.whole.addHostFunction(handle, *signature)
    at.program.add(Call(link, [one.flatten() for one in inputs], [one.flatten() for one in outputs], name=at.name))
    at.host_functions[handle] = function


@lowers(torch.ops.poptorch.call_cpu_op.default)
def call_cpu(at: GraphLowering, inputs: list[fx.Node], key: str, outputs: str) -> list[Tensor]:
    called = at.node.meta.get(operators.CALLED) or operators.host_call(key)
    given = [at.tensor(node) for node in inputs]
    values = at.node.meta["val"]
    results = [at.spread(list(value.shape), type) for value, type in zip(values, at.types, strict=True)]
    likes = [node.meta["val"] for node in inputs]

    def run(*arrays: npt.NDArray[Any]) -> None:
        taken = [
            torch.from_numpy(np.array(array)).reshape(tuple(like.shape)).to(like.dtype)
            for array, like in zip(arrays, likes, strict=False)
        ]
        for target, got, like in zip(arrays[len(likes) :], called.results(taken), values, strict=True):
            if got.shape != like.shape:
                raise ValueError(f"poptorch.CPU({called.ID!r}) gave shape {tuple(got.shape)}; for zeros it was {tuple(like.shape)}")
            target.reshape(-1)[...] = got.detach().numpy().reshape(-1).astype(target.dtype)

    call_host(at, f"cpu/{key}", given, results, run)
    return results


@lowers(torch.ops.poptorch.ipu_print_tensor.default)
def print_tensor(at: GraphLowering, x: fx.Node, title: str, gradient: bool, *layout: Any) -> Tensor:
    tensor = at.tensor(x)
    if layout == PLAIN and tensor.numElements() <= PLAIN[0]:
        at.program.add(PrintTensor(title, tensor, name=at.name))
        return tensor
    shape = tensor.shape()

    def write(array: npt.NDArray[Any]) -> None:
        heading = f"{title}: " if title else ""
        sys.stderr.write(f"{heading}{formatted(array.reshape(shape), *layout)}\n")

    call_host(at, f"print/{title}", [tensor], [], write)
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
def nop(at: GraphLowering, x: fx.Node) -> Tensor:
    return at.tensor(x)
