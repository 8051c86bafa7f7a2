"""`Graph`: variables, tile mappings, compute sets, vertices and what connects them with the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, TextIO, overload

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.arrays.strides import row_major
from pypoplar.braces import TENSORS, ordered
from pypoplar.codelet.registry import CodeletRegistry, collect
from pypoplar.device import Device
from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.cloning import TensorCloneMethod, clone_view
from pypoplar.graph.dot import write_computation_graph, write_vertex_graph
from pypoplar.graph.estimators import RegisteredEstimator, check_estimators
from pypoplar.graph.freezing import freeze
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import DataStream, Function, HostConnections, HostFunction, RemoteBuffer, ReplicatedStreamMode
from pypoplar.graph.location import LocationTable, caller_location
from pypoplar.graph.mapping import MappingTable, TileToTensorMapping, linear_pieces
from pypoplar.graph.names import Scope
from pypoplar.graph.networks import compute_network
from pypoplar.graph.operands import check_writeable
from pypoplar.graph.ordering import simplified, sorted_contiguous_regions, unbroadcast
from pypoplar.graph.runnable import Programs, Runnable
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.tiles import Tiles
from pypoplar.graph.variables import Variables, check_shape
from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.graph.vertices import ComputeSet, FieldRef, NumberedCodelet, VertexRange, VertexRef, VertexTable, pairs
from pypoplar.host_values import values_of
from pypoplar.notebook import ShownInNotebooks
from pypoplar.signatures import misfit
from pypoplar.target import Target
from pypoplar.tracebacks import cut, public, slow_path, swift
from pypoplar.types import UNSIGNED_INT, ElementType, check_type

if TYPE_CHECKING:
    import networkx


class VariableMappingMethod(Enum):
    """Where a new variable's elements go: `NONE` nowhere yet, `LINEAR` evenly over the tiles in element order."""

    NONE = "NONE"
    LINEAR = "LINEAR"


@public
class Graph(ShownInNotebooks):
    """What is to be computed, and where: variables and vertices placed on the tiles of a target.

    `target` is a `Target`, or a `Device` whose target it takes. `MissingFeature` for a replication factor above 1.
    """

    def __init__(self, target: Target | Device, replication_factor: int = 1) -> None:
        if isinstance(target, Device):
            target = target.getTarget()
        if not hasattr(target, "getNumTiles"):
            raise PoplarTypeError(
                f"a graph is made for a Target or a Device, got {target!r}; write Graph(IPUModel().createDevice())"
            )
        if replication_factor != 1:
            raise MissingFeature(f"pypoplar has no replicated graphs; the replication factor is 1, got {replication_factor!r}")
        self._tiles = Tiles(target)
        self._locations = LocationTable()
        self._variables = Variables(self, self._locations)
        self._mapping = MappingTable()
        self._vertices = VertexTable(self._variables, self._locations)
        self._registry = CodeletRegistry()
        self._kinds: dict[Any, NumberedCodelet] = {}
        self._estimators: dict[str, RegisteredEstimator] = {}
        self._host = HostConnections()
        self._scope = Scope()

    def createVirtualGraph(self, tiles: int | Iterable[int], upperTile: int | None = None) -> Graph:
        """A graph that sees only some tiles, numbered from 0; variables, vertices and all else are shared with this graph.

        ``createVirtualGraph([4, 5, 9])`` takes the tiles listed, ``createVirtualGraph(8, 16)`` those in ``[8, 16)``,
        ``createVirtualGraph(100)`` the first 100 of each IPU.
        """
        virtual = Graph.__new__(Graph)
        virtual.__dict__.update(self.__dict__)
        virtual._tiles = self._tiles.chosen(tiles, upperTile)
        return virtual

    def getTarget(self) -> Target:
        """The target; a virtual graph's has only its tiles."""
        return self._tiles.target

    def getTopLevelGraph(self) -> Graph:
        """The graph of all tiles, of which a virtual graph sees some; a graph that is not virtual gives itself."""
        return self._variables.graph

    def getReplicationFactor(self) -> int:
        """Always 1."""
        return 1

    def addReplicationIndexConstant(self, name: str = "") -> Tensor:
        """A constant with the number of the replica: 0."""
        return self.addConstant(UNSIGNED_INT, [], 0, name or "replicationIndex")

    def trace(self, name: str) -> AbstractContextManager[None]:
        """``with graph.trace("layer"):`` puts ``layer/`` before the debug names given inside."""
        return self._scope.inside(name)

    # -- codelets -------------------------------------------------------------------------------------------------------------

    def addCodelets(self, *sources: Any) -> bool:
        """Add codelets: classes, modules, paths of ``.py`` files, lists of these. `CodeletError` shows what cannot be translated.

        The path of the running program, ``__file__``, or of an imported module means the classes that it has by now. Adding a
        codelet again changes nothing. Returns True, as in Poplar.
        """
        self._registry.add(collect(sources))
        return True

    def hasCodelet(self, name: str) -> bool:
        """Whether a codelet of that name has been added, or a template of which it is an instance."""
        return name in self._registry

    def getVertexTypes(self) -> list[str]:
        """The names of the codelets."""
        return [codelet.name for codelet in self._registry.codelets]

    @slow_path
    def _kind(self, vertexType: Any) -> NumberedCodelet:
        index, codelet = self._registry.find(vertexType)
        kind = self._vertices.kinds.get(index)
        if kind is None:
            kind = self._vertices.kinds[index] = NumberedCodelet(index, codelet)
        self._kinds[vertexType] = kind
        return kind

    # -- variables ------------------------------------------------------------------------------------------------------------

    def addVariable(
        self, type: ElementType, shape: Any, mapping: VariableMappingMethod | str = VariableMappingMethod.NONE, name: str = ""
    ) -> Tensor:
        """A new variable as a tensor; ``addVariable(FLOAT, [4, 4], "weights")`` leaves the mapping out.

        Its elements lie in row-major order. Variables of the same name are told apart by a suffix.
        """
        if isinstance(mapping, str):
            name, mapping = mapping, VariableMappingMethod.NONE
        variable = self._new_variable(type, check_shape(shape), self._scope.named(name, "variable"))
        if mapping is VariableMappingMethod.LINEAR:
            begin, end, tile = linear_pieces(prod(variable._shape), self._tiles.count)
            self._mapping.place_pieces(variable, begin, end, self._tiles.check_many(tile, len(tile), "a variable"))
        elif mapping is not VariableMappingMethod.NONE:
            raise PoplarTypeError(f"a variable's mapping is a VariableMappingMethod, got {mapping!r}")
        return variable

    def addConstant(self, type: ElementType, shape: Any, value: Any, name: str = "") -> Tensor:
        """A new tensor that nothing may write to; `value` is a number for all elements, or a list or array with one for each."""
        sizes = check_shape(shape)
        shown = self._scope.named(name, "constant")
        values = values_of(check_type(type), value, prod(sizes), f"constant {shown!r}", sizes)
        constant = self._new_variable(type, sizes, shown)
        self._variables.constants[len(self._variables.names) - 1] = values
        return constant

    def _new_variable(self, type: ElementType, shape: tuple[int, ...], name: str) -> Tensor:
        number = self._variables.add(check_type(type), shape, name, self._locations.note(3))
        tensor = Tensor()
        tensor._variables = self._variables
        tensor._type = type
        tensor._offset = self._variables.first[number]
        tensor._shape = shape
        tensor._strides = row_major(shape)
        return tensor

    @overload
    def clone(self, type: ElementType, tensor: Tensor, /, name: str = "", method: TensorCloneMethod = ...) -> Tensor: ...
    @overload
    def clone(self, tensor: Tensor, /, name: str = "", method: TensorCloneMethod = ...) -> Tensor: ...
    def clone(
        self, *what: Any, name: str = "", method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES
    ) -> Tensor:
        """A new variable shaped and mapped like a tensor: ``clone(tensor)``, ``clone(tensor, "name")``, ``clone(HALF, tensor)``."""
        given = list(what)
        type = check_type(given.pop(0)) if given and isinstance(given[0], ElementType) else None
        tensor = self._own(given.pop(0) if given else None)
        name = given.pop(0) if given else name
        method = given.pop(0) if given else method
        return self._cloned(tensor, 1, name, method, type)[0]

    def cloneN(
        self, tensor: Tensor, N: int, name: str = "", method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES
    ) -> Tensor:
        """N clones of a tensor as one tensor with a new dimension 0 of size N."""
        return self._cloned(tensor, N, name, method)

    def _cloned(
        self,
        tensor: Tensor,
        copies: int,
        name: str,
        method: TensorCloneMethod,
        type: ElementType | None = None,
    ) -> Tensor:
        element = type or self._own(tensor).elementType()
        shown = self._scope.named(name, f"{'+'.join(tensor.variable_names()[:2]) or 'variable'}_clone")
        return clone_view(tensor, copies, method, self._mapping, lambda shape: self._new_variable(element, shape, shown))

    def isConstant(self, tensor: Tensor) -> bool:
        """Whether all elements are of constants."""
        return all(number in self._variables.constants for number in self._own(tensor).variable_numbers())

    def getConstantValue(self, tensor: Tensor) -> AnyArray:
        """The values of a constant, as an array of the tensor's shape."""
        if not self.isConstant(tensor):
            raise PoplarTypeError(f"{tensor._described()} is not a constant: its values are known when the program runs")
        values = np.empty(tensor._shape, tensor._type.dtype)
        ids = tensor._ids()
        for number in tensor.variable_numbers():
            first, last = self._variables.first[number : number + 2]
            chosen = (ids >= first) & (ids < last)
            values[chosen] = self._variables.constants[number].view(values.dtype)[ids[chosen] - first]
        return values

    def _own(self, tensor: Any) -> Tensor:
        """The tensor, if it is one of this graph's."""
        if not isinstance(tensor, Tensor):
            raise PoplarTypeError(f"expected a tensor, got {tensor!r}")
        if tensor._variables is not self._variables and tensor._variables is not None:
            raise PoplarTypeError(f"{tensor._described()} belongs to another graph")
        return tensor

    # -- tile mappings --------------------------------------------------------------------------------------------------------

    @swift
    def setTileMapping(self, what: Tensor | VertexRef | VertexRange, mapping: Any) -> None:
        """Place all elements of a tensor, or a vertex, on a tile; later calls win.

        A tensor also takes the intervals of its flattened view for each tile: ``[[Interval(0, 4)], [Interval(4, 8)]]``, or a
        dict from tiles to intervals. `InvalidTileMapping` for tiles that the graph does not have, and for elements on two tiles.
        """
        if mapping.__class__ is int and 0 <= mapping < self._tiles.count:
            tile = mapping if self._tiles.numbers is None else self._tiles.numbers[mapping]
            if what.__class__ is VertexRef and what._vertices is self._vertices:
                self._vertices.tile[what._number] = tile
                return
            if what.__class__ is Tensor and what._variables is self._variables:
                self._mapping.place(what, tile)
                return
        self._set_mapping(what, mapping)

    @slow_path
    def _set_mapping(self, what: Any, mapping: Any) -> None:
        if isinstance(mapping, np.integer):
            self.setTileMapping(what, int(mapping))
            return
        if isinstance(what, VertexRef | VertexRange):
            if what._vertices is not self._vertices:
                raise PoplarTypeError(f"{what!r} belongs to another graph")
            if isinstance(what, VertexRange):
                tiles = self._tiles.check_many(mapping, len(what), repr(what))
                np.frombuffer(self._vertices.tile, np.int32)[what._first : what._first + len(what)] = tiles
            else:
                self._vertices.tile[what._number] = self._tiles.check(mapping, repr(what))
            return
        tensor = self._own(what)
        if isinstance(mapping, int):
            self._mapping.place(tensor, self._tiles.check(mapping, tensor._described()))
        else:
            self._mapping.place_pieces(tensor, *self._tiles.pieces(tensor, mapping))

    def getTileMapping(self, tensor: Tensor, requireComplete: bool = True) -> TileToTensorMapping:
        """For each tile the intervals of the flattened tensor that it holds.

        Elements without a tile are `InvalidTileMapping`, unless `requireComplete` is False: then the attribute `complete` of
        the answer says whether there are such elements.
        """
        return self._tiles.mapping_of(tensor, *self._mapping.pieces_of(self._own(tensor)), requireComplete)

    def mapped_pieces(self, tensor: Tensor) -> tuple[Int64s, Int64s, Int64s]:
        """What `getTileMapping` answers, as arrays (begin, end, tile) in the order of the tensor (not part of Poplar)."""
        return self._tiles.pieces_of_mapping(tensor, *self._mapping.pieces_of(self._own(tensor)), True)

    def elements_without_tile(self, tensor: Tensor) -> int:
        """How many elements of a tensor have no tile, here or outside a virtual graph (not part of Poplar)."""
        begin, end, _ = self._mapping.pieces_of(self._own(tensor))
        return tensor.numElements() - int((end - begin).sum())

    def getSortedContiguousRegions(
        self, tensor: Tensor, intervals: Iterable[Any], removeAliasedIntervals: bool = False
    ) -> list[list[Interval]]:
        """The intervals of the flattened tensor in the order of memory; those that follow each other there stand in one list."""
        return sorted_contiguous_regions(self._own(tensor), intervals, removeAliasedIntervals)

    def reorderToSimplify(self, reference: Tensor, others: Iterable[Tensor] = ()) -> tuple[Tensor, list[Tensor]]:
        """`reference` flattened and permuted to lie in the order of memory, and `others` permuted in the same way."""
        several = [self._own(other) for other in ordered(others, "the other tensors of reorderToSimplify", TENSORS)]
        return simplified(self._own(reference), several)

    def findUnbroadcastTensor(self, tensor: Tensor) -> Tensor | None:
        """The tensor before it was broadcast, with size 1 (or the period) where it repeats; None if it does not repeat."""
        return unbroadcast(self._own(tensor))

    # -- vertices -------------------------------------------------------------------------------------------------------------

    def addComputeSet(self, name: str = "") -> ComputeSet:
        """A new compute set: vertices that run in parallel, in one step."""
        return ComputeSet(self._vertices, self._vertices.add_set(self._scope.named(name, "computeSet")))

    @swift
    def addVertex(self, computeSet: ComputeSet, vertexType: Any, connections: Any = None) -> VertexRef:
        """A new vertex of a codelet, named or given as its class, with `connections` from field names to tensors or values.

        An edge takes a tensor (a `VectorList` one of rank 2, or a list of them), a plain field a value, an Input of a number or a
        `Vector` either. Raises `UnknownVertexType`, `UnknownField` or `GraphConnectionError`, and adds nothing then.
        """
        vertices = self._vertices
        if computeSet.__class__ is not ComputeSet or computeSet._vertices is not vertices:
            raise PoplarTypeError(f"a vertex is added to a compute set of its graph, got {computeSet!r}")
        kind = self._kinds.get(vertexType) or self._kind(vertexType)
        number = len(vertices.tile)
        vertices.rows.extend((kind.index, computeSet._number, self._locations.note()))
        vertices.tile.append(-1)
        if connections is not None:
            try:
                for name, value in connections.items() if connections.__class__ is dict else pairs(connections):
                    vertices.connect(number, kind.slots.get(name) or kind.slot(name), value)
            except BaseException as error:
                vertices.remove_last(number)
                cut(error)
                raise
        return VertexRef(vertices, number, kind)

    def add_vertices(
        self, computeSet: ComputeSet, vertexType: Any, connections: Mapping[str, Any], tiles: Any = None
    ) -> VertexRange:
        """Add many vertices of one codelet at once, without a loop in Python (not part of Poplar).

        Dimension 0 of each tensor in `connections` goes over the vertices: a `Vector` field takes a tensor of rank 2, whose row
        v goes to vertex v, a scalar field rank 1, a `VectorList` field rank 3, or a list with a tensor of rank 2 for each of its
        rows, whose lengths may differ. A plain field or an Input takes one value, or an array with one for each vertex. `tiles`
        is an int array with the tile of each vertex, one tile for all, or None: later.
        """
        vertices = self._vertices
        if computeSet.__class__ is not ComputeSet or computeSet._vertices is not vertices:
            raise PoplarTypeError(f"vertices are added to a compute set of their graph, got {computeSet!r}")
        kind = self._kinds.get(vertexType) or self._kind(vertexType)
        given = [(kind.slots.get(name) or kind.slot(name), value) for name, value in pairs(connections)]
        count = vertices.count_of(kind, given, tiles)
        placed = np.full(count, -1) if tiles is None else self._tiles.check_many(tiles, count, f"vertices of {kind.name}")
        first = vertices.add_many(kind, computeSet, self._locations.note(), placed)
        try:
            for slot, value in given:
                vertices.connect_many(first, count, slot, value)
        except BaseException:
            vertices.remove_last(first)
            raise
        return VertexRange(vertices, first, count, kind)

    @swift
    def connect(self, field: FieldRef, value: Any) -> None:
        """Connect a field to a tensor (a `VectorList` to one of rank 2, or a list of rank 1), or set a plain field to a value.

        `GraphConnectionError` for a tensor of the wrong rank or element type. Fields connected twice or never are judged when the
        Engine is built.
        """
        try:
            vertex = self._field(field)
            if field._row is None:
                self._vertices.connect(vertex._number, field._slot, value)
            else:
                self._vertices.connect_row(vertex._number, field._slot, field._row, value)
        except BaseException as error:
            cut(error)
            raise

    def _field(self, field: Any) -> VertexRef:
        """The vertex of a field, which is one of this graph's."""
        if field.__class__ is not FieldRef or field._vertex._vertices is not self._vertices:
            raise PoplarTypeError(f"expected a field of a vertex of this graph, such as vertex['x'], got {field!r}")
        vertex: VertexRef = field._vertex
        return vertex

    def setInitialValue(self, what: FieldRef | Tensor, value: Any) -> None:
        """What a plain field, or the elements of a variable, hold after `Engine.load`; later calls win, and all over defaults."""
        if isinstance(what, FieldRef):
            self._vertices.set_value(self._field(what)._number, what._slot, value)
            return
        tensor = self._own(what)
        check_writeable(tensor, "cannot give an initial value to")
        values = values_of(tensor._type, value, tensor.numElements(), tensor._described(), tensor._shape)
        self._variables.initial.append((tensor.runs(), values))

    def setFieldSize(self, field: FieldRef, size: int) -> None:
        """The number of elements of a plain vector field: zeros, unless `setInitialValue` or a default gives values."""
        self._vertices.set_size(self._field(field)._number, field._slot, size)

    def setPerfEstimate(self, vertex: VertexRef | VertexRange, cycles: Any, flops: Any = None) -> None:
        """Worker cycles of a vertex (arrays for a range of them), to be used instead of what its code costs.

        `flops` are its floating-point operations, for the engine option ``profiler.includeFlopEstimates``; without them its code
        counts them.
        """
        self._vertices.set_estimate(vertex, cycles, flops)

    def setCycleEstimate(self, vertex: VertexRef | VertexRange, cycles: Any) -> None:
        """The older name of `setPerfEstimate`."""
        self._vertices.set_estimate(vertex, cycles, None)

    def registerPerfEstimator(self, vertexType: Any, estimator: Callable[[VertexIntrospector, Target], Any]) -> None:
        """A function that gives worker cycles, or a `VertexPerfEstimate`, for each vertex of a codelet without its own estimate.

        `vertexType` is the name or the class of a codelet, or of a template, whose instances the estimator then serves: it sees
        their types by ``vertex.templateArguments()``. It is asked once for all vertices of a codelet with equal sizes and values.
        The codelet may be added later; a graph that does not have it is refused when the Engine is built: `UnknownVertexType`.
        """
        wrong = misfit(estimator, "vertex", "target")
        if wrong:
            raise PoplarTypeError(f"the estimator of {vertexType}: expected a function of a vertex and a target, got {wrong}")
        self._estimators[self._registry.name_of(vertexType)] = RegisteredEstimator(estimator, caller_location())

    def numVertices(self) -> int:
        """Vertices of all compute sets."""
        return len(self._vertices.tile)

    def numComputeSets(self) -> int:
        """Compute sets, executed or not."""
        return len(self._vertices.set_names)

    # -- host and functions ---------------------------------------------------------------------------------------------------

    def addHostToDeviceFIFO(
        self,
        handle: str,
        type: ElementType,
        numElements: int,
        mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE,
        options: Mapping[str, str] | None = None,
    ) -> DataStream:
        """A stream to the device, of which each Copy takes `numElements` elements."""
        return self._host.add_stream(handle, type, numElements, "to device", caller_location(), mode, options)

    def addDeviceToHostFIFO(
        self, handle: str, type: ElementType, numElements: int, options: Mapping[str, str] | None = None
    ) -> DataStream:
        """A stream to the host, to which each Copy gives `numElements` elements."""
        return self._host.add_stream(handle, type, numElements, "to host", caller_location(), options=options)

    def addRemoteBuffer(
        self,
        handle: str,
        type: ElementType,
        numElements: int,
        repeats: int = 1,
        rearrangeOnHost: bool = False,
        optimiseMemory: bool = False,
    ) -> RemoteBuffer:
        """Memory outside the device with `repeats` rows of `numElements` elements. The last two arguments change nothing here."""
        return self._host.add_remote_buffer(handle, type, numElements, repeats, caller_location())

    def addHostFunction(
        self, handle: str, inputs: Iterable[tuple[ElementType, int]], outputs: Iterable[tuple[ElementType, int]]
    ) -> HostFunction:
        """A function of the host for `program.Call`; inputs and outputs are (type, elements) pairs."""
        return self._host.add_host_function(handle, inputs, outputs, caller_location())

    def addFunction(self, program: Runnable) -> Function:
        """A program that `program.Call` runs from several places; steps added to a Sequence later are not part of it."""
        if not isinstance(program, Runnable):
            raise PoplarTypeError(f"addFunction takes a program, got {program!r}")
        return self._host.add_function(program.taken(), caller_location())

    def createHostWrite(self, handle: str, tensor: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let `Engine.writeTensor` write a tensor under this name."""
        check_writeable(self._own(tensor), "the host cannot write to")
        self._host.add_handle("host write", handle, tensor, caller_location())

    def createHostRead(self, handle: str, tensor: Tensor, rearrangeOnHost: bool = False) -> None:
        """Let `Engine.readTensor` read a tensor under this name."""
        self._host.add_handle("host read", handle, self._own(tensor), caller_location())

    def host(self) -> HostConnections:
        """The tables of streams, handles and functions, which the compiler reads (not part of Poplar)."""
        return self._host

    # -- for the compiler -----------------------------------------------------------------------------------------------------

    @public
    def to_networkx(self) -> networkx.DiGraph[Any]:
        """The compute graph for networkx: variables and compute sets as nodes, what vertices read and write as edges.

        Ours; see `pypoplar.graph.networks.compute_network` for the attributes of nodes and edges.
        """
        return compute_network(self.freeze())

    def outputComputationGraph(self, stream: TextIO, programs: Programs | None = None) -> None:
        """Write the compute graph as Graphviz DOT text; with `programs`, only the compute sets that they execute."""
        write_computation_graph(stream, self, programs)

    def outputVertexGraph(self, stream: TextIO, programs: Programs | None = None) -> None:
        """Write vertices, their tiles and the elements that they touch as DOT text; `programs` as in `outputComputationGraph`."""
        write_vertex_graph(stream, self, programs)

    def freeze(self) -> FrozenGraph:
        """The graph as flat arrays, which later changes do not touch; a virtual graph gives the whole of which it is a part."""
        whole = self.getTopLevelGraph().getTarget()
        check_estimators(self._estimators, self._registry)
        return freeze(whole, self._variables, self._mapping, self._vertices, self._registry.codelets, self._estimators)
