"""Calls of functions of the graph and of the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pypoplar.braces import TENSORS, ordered
from pypoplar.called_names import told
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.host_links import Function, HostFunction
from pypoplar.graph.operands import check_arguments, check_link
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Calling, Nothing, Program
from pypoplar.tracebacks import public


@public
class Call(Program):
    """Run a function of the graph, or call a function of the host with tensors for its inputs and outputs.

    Parameters
    ----------
    function:
        What `Graph.addFunction` or `Graph.addHostFunction` gave.
    inputs:
        A tensor for each input of a host function; none for a function of the graph, whose program names its tensors.
    outputs:
        A tensor for each output of a host function, which it fills.
    name:
        Its debug name.
    names:
        For reports, what beginnings of the names of a function's steps stand for in this call: ``{"layer0": "layer3"}``.
    note:
        For reports, what else there is to say of the call.

    Raises
    ------
    PoplarTypeError
        If it is no such function, or a tensor is of another type or graph.
    TensorShapeError
        If there are not as many tensors or elements as the host function has.
    TensorWriteError
        If an output holds a constant or an element twice.
    """

    def __init__(
        self,
        function: Function | HostFunction,
        inputs: Iterable[Tensor] = (),
        outputs: Iterable[Tensor] = (),
        name: str = "",
        *,
        names: Mapping[str, str] | None = None,
        note: str = "",
    ) -> None:
        super().__init__(name)
        self.names, self.note = dict(ordered(names or {}, "the names of Call", "{'layer0': 'layer3'}")), note
        self.function = function
        self.inputs = list(ordered(inputs, "the inputs of Call", TENSORS))
        self.outputs = list(ordered(outputs, "the outputs of Call", TENSORS))
        if isinstance(function, Function):
            if self.inputs or self.outputs:
                raise PoplarTypeError("Call of a function of the graph takes no tensors: its program names them")
        elif isinstance(function, HostFunction):
            what = f"host function {function.handle()!r}"
            check_arguments(what, self.inputs, function.inputs, written=False)
            check_arguments(what, self.outputs, function.outputs, written=True)
            check_link(function, [*self.inputs, *self.outputs])
        else:
            raise PoplarTypeError(f"Call takes what graph.addFunction or graph.addHostFunction gave, got {function!r}")

    def reads(self) -> tuple[Tensor, ...]:
        return tuple(self.inputs)

    def writes(self) -> tuple[Tensor, ...]:
        return tuple(self.outputs)

    def contains(self) -> Calling | Nothing:
        return Calling(self.function) if isinstance(self.function, Function) else Nothing()

    def detail(self) -> str:
        if isinstance(self.function, HostFunction):
            return f"host function {self.function.handle()}"
        return told(self.names, self.note)
