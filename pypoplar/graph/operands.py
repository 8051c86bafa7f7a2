"""What programs ask of their tensors: type, number of elements, whether they can be written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pypoplar.arrays import strides
from pypoplar.arrays.aliasing import misplaced
from pypoplar.errors import PoplarTypeError, TensorShapeError, TensorWriteError
from pypoplar.graph.host_links import DataStream, HostFunction, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.types import ElementType

Types = tuple[ElementType, ...]


def check_tensor(tensor: Any, what: str) -> Tensor:
    """The argument, which is a tensor of a graph."""
    if not isinstance(tensor, Tensor) or not tensor.valid():
        raise PoplarTypeError(f"{what} takes a tensor, got {tensor!r}")
    return tensor


def check_kind(tensor: Any, what: str, types: Types | None) -> Tensor:
    """A tensor whose element type is one of `types`; without them, BOOL or an integer type."""
    checked = check_tensor(tensor, what)
    if checked.elementType() not in types if types else checked.elementType().is_floating:
        wanted = " or ".join(map(repr, types)) if types else "BOOL or an integer type"
        raise PoplarTypeError(f"{what} is of type {wanted}, got {checked._described()}")
    return checked


def check_one_element(tensor: Any, what: str, types: Types | None) -> Tensor:
    """A tensor of one element, of any rank, of one of `types`."""
    checked = check_kind(tensor, what, types)
    if checked.numElements() != 1:
        raise TensorShapeError(f"{what} has one element, got {checked._described()} of {checked.numElements()}")
    return checked


def check_writeable(tensor: Tensor, what: str) -> None:
    """`TensorWriteError` if the tensor holds a constant, or an element more than once."""
    if tensor.containsConstant():
        raise TensorWriteError(f"{what} {tensor._described()}: it holds a constant")
    if tensor.containsAliases():
        raise TensorWriteError(f"{what} {tensor._described()}: it holds an element more than once")


def check_link(link: DataStream | RemoteBuffer | HostFunction, tensors: Iterable[Tensor]) -> None:
    """What connects a graph with its host, and tensors that it takes or gives, which are of that graph."""
    for tensor in tensors:
        if not tensor.graph.host().has(link):
            raise PoplarTypeError(f"{link!r} belongs to another graph than {tensor._described()}")


def check_copy(source: Tensor, destination: Tensor) -> None:
    """Two tensors of a Copy: as many elements of one type, and none that both hold at different positions."""
    check_tensor(source, "Copy")
    check_tensor(destination, "Copy")
    if source._variables is not destination._variables:
        raise PoplarTypeError(f"Copy between tensors of two graphs: {source._described()} and {destination._described()}")
    if source.numElements() != destination.numElements():
        raise TensorShapeError(
            f"Copy needs as many elements on both sides: {source._described()} has {source.numElements()}, "
            f"{destination._described()} has {destination.numElements()}"
        )
    if source.elementType() is not destination.elementType():
        raise PoplarTypeError(f"Copy needs one element type: {source._described()} to {destination._described()}; see popops.cast")
    check_writeable(destination, "cannot copy to")
    if _surely_apart(source, destination) or set(source.variable_numbers()).isdisjoint(destination.variable_numbers()):
        return
    shared = misplaced(source._run_list(), destination._run_list())
    if shared is not None:
        where = destination._variables.region_text(shared) if destination._variables else ""
        raise TensorWriteError(
            f"Copy from {source._described()} to {destination._described()}: both hold {where}, at different positions; "
            "copy through another variable"
        )


def _surely_apart(one: Tensor, other: Tensor) -> bool:
    """True where all elements of one lie before all of the other; False decides nothing."""
    if one._strides is None or other._strides is None or not one.numElements():
        return False
    low, high = strides.bounds(one._offset, one._shape, one._strides)
    begin, end = strides.bounds(other._offset, other._shape, other._strides)
    return high <= begin or end <= low


def check_arguments(what: str, tensors: Sequence[Any], wanted: Sequence[tuple[ElementType, int]], *, written: bool) -> None:
    """The input or output tensors of a host function, against its (type, elements) pairs."""
    kind = "output" if written else "input"
    if len(tensors) != len(wanted):
        raise TensorShapeError(f"{what} has {len(wanted)} {kind}s, got {len(tensors)} tensors")
    for number, (tensor, (type, elements)) in enumerate(zip(tensors, wanted, strict=True)):
        checked = check_kind(tensor, f"{kind} {number} of {what}", (type,))
        if checked.numElements() != elements:
            raise TensorShapeError(f"{kind} {number} of {what} has {elements} elements, got {checked._described()}")
        if written:
            check_writeable(checked, f"{what} cannot write to")
