"""Copies between tensors, streams and remote buffers; and tensors whose values nobody needs any more."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.host_links import DataStream, RemoteBuffer
from pypoplar.graph.operands import check_copy, check_kind, check_link, check_tensor, check_writeable
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.tracebacks import public
from pypoplar.types import INT, UNSIGNED_INT

_NOTHING = Nothing()  # one for all: programs may have hundreds of thousands of copies


@public
class Copy(Program):
    """Copy elements in flattened order: tensor to tensor, stream to tensor, tensor to stream, or a remote buffer's rows.

    Counts and types of elements must agree, shapes need not.

    Parameters
    ----------
    source:
        A tensor, a stream to the device, or a remote buffer.
    destination:
        A tensor, a stream to the host, or a remote buffer; one of both is a tensor.
    offset:
        With a remote buffer an INT or UNSIGNED_INT tensor with the numbers of the rows that are transferred; without it, row 0.
        A bool is Poplar's `dontOutline` or `optimiseMemory`, which change no result; a string is the name.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If element types or graphs differ, a stream goes the other way, or an argument is none of these.
    TensorShapeError
        If the numbers of elements differ.
    TensorWriteError
        If the destination holds a constant or an element twice, or an element at another position than the source.

    Examples
    --------
    >>> import numpy
    >>> from pypoplar import INT, Engine, Graph, IPUModel
    >>> from pypoplar.program import Copy
    >>> device = IPUModel("tiny").createDevice()
    >>> graph = Graph(device)
    >>> x = graph.addConstant(INT, [4], [1, 2, 3, 4])
    >>> rows = graph.addConstant(INT, [2], [0, 2])
    >>> for tensor in (x, rows):
    ...     graph.setTileMapping(tensor, 0)
    >>> buffer = graph.addRemoteBuffer("buffer", INT, 2, repeats=3)
    >>> engine = Engine(graph, Copy(x, buffer, rows))
    >>> engine.loadAndRun(device)
    >>> row = numpy.zeros(2, numpy.int32)
    >>> engine.copyFromRemoteBuffer("buffer", row, 2)
    >>> row.tolist()
    [3, 4]
    """

    def __init__(
        self,
        source: Tensor | DataStream | RemoteBuffer,
        destination: Tensor | DataStream | RemoteBuffer,
        offset: Tensor | bool | str | None = None,
        name: str = "",
    ) -> None:
        if isinstance(offset, str):
            name, offset = offset, None
        self.optimise_memory = offset is True and not (isinstance(source, Tensor) and isinstance(destination, Tensor))
        if isinstance(offset, bool):  # dontOutline of a Copy between tensors changes nothing here
            offset = None
        super().__init__(name)
        self.source = source
        self.destination = destination
        self.offset = offset
        if isinstance(source, Tensor) and isinstance(destination, Tensor):
            if offset is not None:
                raise PoplarTypeError("a Copy between tensors takes no offset")
            check_copy(source, destination)
        elif isinstance(source, DataStream | RemoteBuffer) and isinstance(destination, Tensor):
            self._check_transfer(source, destination, "to device")
            check_writeable(destination, "cannot copy to")
        elif isinstance(source, Tensor) and isinstance(destination, DataStream | RemoteBuffer):
            self._check_transfer(destination, source, "to host")
        else:
            raise PoplarTypeError(
                f"Copy goes between tensors, or between a tensor and a stream or remote buffer, got {source!r} and {destination!r}"
            )

    def _check_transfer(self, host: DataStream | RemoteBuffer, tensor: Tensor, direction: str) -> None:
        check_link(host, [end for end in (tensor, self.offset) if isinstance(end, Tensor) and end.valid()])
        elements = host.numElements()
        if isinstance(host, RemoteBuffer):
            if self.offset is not None:
                if not isinstance(self.offset, Tensor):
                    raise PoplarTypeError(
                        f"the offset into {host!r} is a tensor with row numbers, got {self.offset!r}; see graph.addConstant"
                    )
                check_kind(self.offset, "the offset into a remote buffer", (INT, UNSIGNED_INT))
                elements *= self.offset.numElements()
        elif self.offset is not None:
            raise PoplarTypeError("a Copy of a stream takes no offset")
        elif host.direction != direction:
            raise PoplarTypeError(f"{host!r} goes {host.direction} only; a Copy {direction} needs a stream of that direction")
        if elements != tensor.numElements():
            raise TensorShapeError(f"{host!r} transfers {elements} elements, but {tensor._described()} has {tensor.numElements()}")
        if host.elementType() is not tensor.elementType():
            raise PoplarTypeError(
                f"{host!r} is of type {host.elementType()!r}, but {tensor._described()} is of type {tensor.elementType()!r}"
            )

    def reads(self) -> tuple[Tensor, ...]:
        source = (self.source,) if isinstance(self.source, Tensor) else ()
        return (*source, self.offset) if isinstance(self.offset, Tensor) else source

    def writes(self) -> tuple[Tensor, ...]:
        return (self.destination,) if isinstance(self.destination, Tensor) else ()

    def contains(self) -> Nothing:
        return _NOTHING


@public
class WriteUndef(Program):
    """Make a tensor's values undefined: what it held is not needed any more.

    Until it is written its memory may serve other variables.

    Parameters
    ----------
    tensor:
        A view of variables.
    name:
        Its debug name.

    Raises
    ------
    TensorWriteError
        If it holds a constant or an element twice.
    PoplarTypeError
        If it is no tensor.
    """

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        super().__init__(name)
        self.tensor = check_tensor(tensor, "WriteUndef")
        check_writeable(tensor, "WriteUndef cannot write to")

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def contains(self) -> Nothing:
        return _NOTHING

    def detail(self) -> str:
        return self.tensor.getDebugStr()
