"""`CPU`: a function of Python in the middle of a program of the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.poptorch.operators.captured_forms import isRunningOnIpu, running_on_ipu
from pypoplar.poptorch.operators.tensor_arguments import blank, check_tensor, described
from pypoplar.tracebacks import public

CALLED = "poptorch.CPU"  # what a node's meta calls the function
_serials: Counter[str] = Counter()
_known: WeakValueDictionary[str, CPU] = WeakValueDictionary()


@torch.library.custom_op("poptorch::call_cpu_op", mutates_args=(), schema="(Tensor[] inputs, str key, str outputs) -> Tensor[]")
def _call(inputs: list[torch.Tensor], key: str, outputs: str) -> list[torch.Tensor]:
    return [one.clone() for one in host_call(key).results(inputs)]


@_call.register_fake
def _(inputs: list[torch.Tensor], key: str, outputs: str) -> list[torch.Tensor]:
    return blank(outputs, inputs[0].device if inputs else None)


def name_calls(graph: fx.Graph) -> None:
    """Call functions by their IDs in a graph, which are the same wherever it is made again; `node.meta` has the functions."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.poptorch.call_cpu_op.default):
        inputs, key, outputs = node.args
        node.meta[CALLED] = host_call(str(key))
        node.args = (inputs, node.meta[CALLED].ID, outputs)


def _refused(ctx: Any, *gradients: Any) -> NoReturn:
    raise MissingFeature("poptorch.CPU has no gradient: functions of the CPU are for inference, as in PopTorch")


_call.register_autograd(_refused)


def host_call(key: str) -> CPU:
    """The function that an operation of the graph stands for."""
    return _known[key]


@public
class CPU:
    """A function, or a layer, that runs on the CPU in the middle of a model on the IPU; for inference alone.

    Call it in a forward pass as you would the function, with tensors. Where a model is captured, the function runs once with zeros,
    to know the shapes of what it gives.

    Parameters
    ----------
    layer_to_call:
        A function of tensors that gives a tensor or several. Parameters of a layer have no gradients from then on.
    ID:
        Its name in the program and the report.

    Raises
    ------
    PoplarTypeError
        For what cannot be called, or what gives no tensors.
    MissingFeature
        Where a loss depends on it.
    """

    def __init__(self, layer_to_call: Callable[..., Any], ID: str) -> None:
        if not callable(layer_to_call):
            raise PoplarTypeError(f"poptorch.CPU takes a function or a layer, got {layer_to_call!r}")
        if not isinstance(ID, str):
            raise PoplarTypeError(f"poptorch.CPU takes a string for ID, got {ID!r}")
        if isinstance(layer_to_call, torch.nn.Module):
            layer_to_call.requires_grad_(False)
        self._layer, self.ID = layer_to_call, ID
        self._register()

    def _register(self) -> None:
        _serials[self.ID] += 1
        self._key = self.ID if _serials[self.ID] == 1 else f"{self.ID}_{_serials[self.ID]}"
        _known[self._key] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies, and what is read from files, have functions of their own."""
        self.__dict__.update(state)
        self._register()

    def results(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The function's results for these tensors, without gradients.

        Parameters
        ----------
        inputs:
            Its arguments.

        Returns
        -------
        list[torch.Tensor]
            One for each of its results.

        Raises
        ------
        PoplarTypeError
            For a result that is no tensor.
        """
        with torch.no_grad():
            results = self._layer(*inputs)
        listed = list(results) if isinstance(results, list | tuple) else [results]
        for number, one in enumerate(listed):
            check_tensor(f"CPU({self.ID!r})", f"result {number}", one)
        return listed

    def __call__(self, *input: torch.Tensor) -> Any:
        """The function's results; while a model is captured, an operation of the graph that calls it."""
        for number, one in enumerate(input):
            check_tensor(f"CPU({self.ID!r})", f"argument {number}", one)
        if not isRunningOnIpu():
            return self._layer(*input)
        with _disable_current_modes(), running_on_ipu(False):
            given = self._layer(*(torch.zeros(tuple(one.shape), dtype=one.dtype) for one in input))
        several = isinstance(given, list | tuple)
        results = torch.ops.poptorch.call_cpu_op(list(input), self._key, described(list(given) if several else [given]))
        return results if several else results[0]
