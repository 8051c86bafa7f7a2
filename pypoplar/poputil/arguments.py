"""Checks of the arguments that all library calls have."""

from __future__ import annotations

import operator
from typing import Any

from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import InvalidTileMapping, PoplarError, PoplarIndexError, PoplarTypeError, UnknownVertexType
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import check_shape
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import whole_variables
from pypoplar.host_values import values_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType, check_type


def check_graph(call: str, graph: object) -> None:
    """`PoplarTypeError` unless `graph`, the first argument of every call, is one."""
    if not isinstance(graph, Graph):
        raise PoplarTypeError(f"{call}: the first argument is the graph, got {graph!r}")


def check_tensor(call: str, tensor: object, name: str = "") -> None:
    """`PoplarTypeError` unless `tensor`, the argument `name`, is one."""
    if not isinstance(ordered(tensor, f"{name or 'a tensor'} of {call}", TENSORS), Tensor):
        what = f"{tensor!r} for {name}" if name else f"{tensor!r}"
        raise PoplarTypeError(f"{call} takes a tensor, got {what}; graph.addConstant makes one of values")


def check_own(call: str, graph: object, *tensors: object, **named: object) -> None:
    """`PoplarTypeError` unless `graph` is one and all are tensors of it; those given by name are called so."""
    check_graph(call, graph)
    for name, tensor in (*(("", tensor) for tensor in tensors), *named.items()):
        check_tensor(call, tensor, name)
        assert isinstance(graph, Graph)
        assert isinstance(tensor, Tensor)
        if not tensor.valid() or tensor.graph is not graph.getTopLevelGraph():
            whose = "another" if tensor.valid() else "no"
            raise PoplarTypeError(f"{call}: {_called(name, tensor)} belongs to {whose} graph")


def check_operands(call: str, graph: object, *tensors: object, **named: object) -> None:
    """`PoplarTypeError` unless all are tensors of the graph, `InvalidTileMapping` unless each of their elements has a tile."""
    check_own(call, graph, *tensors, **named)
    for name, tensor in (*(("", tensor) for tensor in tensors), *named.items()):
        assert isinstance(graph, Graph)
        assert isinstance(tensor, Tensor)
        if not any(graph.elements_without_tile(whole) for whole in whole_variables(tensor)):  # which is quick
            continue
        missing = graph.elements_without_tile(tensor)
        if missing:
            raise InvalidTileMapping(
                f"{call}: {missing} of {tensor.numElements()} elements of {_called(name, tensor)} have no tile; map it first, "
                "with poputil.mapTensorLinearly(graph, tensor) for instance"
            )


def _called(name: str, tensor: Tensor) -> str:
    """The argument `name` in a message."""
    return f"{name} = {tensor!r}" if name else repr(tensor)


def check_compute_set(call: str, graph: Graph, cs: ComputeSet) -> None:
    """`PoplarTypeError` unless a compute set, to which a call adds vertices, is the graph's."""
    if cs.graph is not graph.getTopLevelGraph():
        raise PoplarTypeError(f"{call}: {cs!r} belongs to another graph")


def check_codelet(call: str, graph: Graph, vertexType: str) -> None:
    """`UnknownVertexType` unless the graph has a codelet that a call needs, before the call changes anything."""
    if not graph.hasCodelet(vertexType):
        library = vertexType.partition("::")[0]
        raise UnknownVertexType(f"{call}: no codelet is called '{vertexType}'; call {library}.addCodelets(graph) first")


def check_flag(call: str, name: str, value: object) -> None:
    """`PoplarTypeError` unless the argument `name` is True or False."""
    if not isinstance(value, bool):
        raise PoplarTypeError(f"{call}: {name} is True or False, got {value!r}")


def check_float(call: str, name: str, value: float) -> None:
    """`PoplibsError` for an argument that is NaN, `PoplarTypeError` for one beyond the numbers of a FLOAT."""
    values_of(FLOAT, value, 1, f"{name} of {call}")
    if value != value:
        raise PoplibsError(f"{call}: {name} is a number, got {value!r}")


def check_writeable(call: str, tensor: Tensor) -> None:
    """`PoplibsError` for a tensor that a call cannot write: it holds an element twice, or a constant."""
    if not tensor.isParallelWriteable():
        raise PoplibsError(f"{call}: {tensor!r} cannot be written: it holds an element twice, or a constant")


def check_call(call: str, graph: object, prog: object, debugContext: object) -> None:
    """`PoplarTypeError` unless a call has a graph, a Sequence to extend, and a string or nothing for its debug name."""
    check_graph(call, graph)
    check_prog(call, prog)
    check_debug(call, debugContext)


def check_debug(call: str, debugContext: object) -> None:
    """`PoplarTypeError` unless a debug name is a string or nothing."""
    if not isinstance(debugContext, str | None):
        raise PoplarTypeError(f"{call}: a debug name is a string, got {debugContext!r}; options come after it")


def check_prog(call: str, prog: object) -> None:
    """`PoplarTypeError` unless `prog` is a Sequence, which the call extends; before the call changes anything."""
    if not isinstance(prog, Sequence):
        raise PoplarTypeError(f"{call}: the argument prog is the Sequence that the call extends, got {prog!r}")


def whole_number(call: str, name: str, value: Any, least: int = 0) -> int:
    """The argument `name` as an int; `PoplarTypeError` for what is none, `PoplibsError` for one below `least`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"{call}: {name} is a whole number, got {value!r}") from None
    if number < least:
        raise PoplibsError(f"{call}: {name} is {least} at least, got {number}")
    return number


def shape_of(call: str, shape: object) -> tuple[int, ...]:
    """The argument for a shape as a tuple; `PoplarTypeError` or `TensorShapeError` for what is none."""
    try:
        return check_shape(shape)
    except PoplarError as problem:
        raise type(problem)(f"{call}: {problem}") from None


def element_type(call: str, type_: object) -> ElementType:
    """The argument for an element type; `PoplarTypeError` for what is none, or none of the device's."""
    try:
        return check_type(type_)
    except PoplarTypeError as problem:
        raise type(problem)(f"{call}: {problem}") from None


def dimension_of(call: str, name: str, tensor: Tensor, value: Any) -> int:
    """The argument `name` as the number of a dimension of `tensor`; `PoplarIndexError` for one that it does not have."""
    number = whole_number(call, name, value)
    if number >= tensor.rank():
        raise PoplarIndexError(f"{call}: {name} is {number}, and {tensor!r} has {tensor.rank()} dimensions")
    return number
