"""`Graph`: variables, tile mappings, compute sets, vertices and what connects them with the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, overload

import numpy as np
from attrs import evolve

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.arrays.freed_memory import keep_freed
from pypoplar.arrays.intervals import Interval
from pypoplar.arrays.strides import row_major
from pypoplar.braces import TENSORS, ordered
from pypoplar.codelet.language.cpp_source import CodeletFileType, told_apart
from pypoplar.codelet.registry import CodeletRegistry, collect
from pypoplar.device import Device
from pypoplar.errors import MissingFeature, PoplarMemoryError, PoplarTypeError
from pypoplar.graph.cloning import TensorCloneMethod, clone_view
from pypoplar.graph.dot import write_computation_graph, write_vertex_graph
from pypoplar.graph.estimators import RegisteredEstimator, check_estimators
from pypoplar.graph.freezing import freeze
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import DataStream, Function, HostConnections, HostFunction, RemoteBuffer, ReplicatedStreamMode
from pypoplar.graph.location import LocationTable, caller_location
from pypoplar.graph.mapping import KeptLayout, Laid, MappingTable, TileToTensorMapping, linear_pieces
from pypoplar.graph.names import Scope
from pypoplar.graph.networks import compute_network
from pypoplar.graph.operands import check_writeable
from pypoplar.graph.ordering import simplified, sorted_contiguous_regions, unbroadcast
from pypoplar.graph.runnable import Programs, Runnable
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.tiles import CREATED, DividedTiles, GraphReplicas, NonReplicatedTensor, Tiles, check_factor, part_of
from pypoplar.graph.variables import Variables, check_shape
from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.graph.vertices import ComputeSet, FieldRef, NumberedCodelet, VertexRange, VertexRef, VertexTable, pairs
from pypoplar.host_memory import Holdings, MemoryWatch, TableSize, shortage
from pypoplar.host_values import few_values_of, held_bytes
from pypoplar.notebook import ShownInNotebooks
from pypoplar.signatures import misfit
from pypoplar.target import Target
from pypoplar.tracebacks import cut, public, slow_path, swift
from pypoplar.types import UNSIGNED_INT, ElementType, check_type

if TYPE_CHECKING:
    import os
    from types import ModuleType
    from typing import TypeAlias

    import networkx
    from numpy.typing import ArrayLike

    from pypoplar.codelet.language.fields import Vertex
    from pypoplar.graph.mapping import Derive, Intervals, TileMapping
    from pypoplar.graph.vertex_introspector import VertexPerfEstimate

    VertexType: TypeAlias = type[Vertex] | str
    Codelets: TypeAlias = "type[Vertex] | ModuleType | str | os.PathLike[str] | CodeletFileType | TextIO | Iterable[Codelets]"
    FieldValue: TypeAlias = Tensor | Iterable[Tensor] | ArrayLike


class VariableMappingMethod(Enum):
    """Where the elements of a variable that `Graph.addVariable` makes go.

    Attributes
    ----------
    NONE:
        Nowhere yet.
    LINEAR:
        Evenly over the tiles, in element order.
    """

    NONE = "NONE"
    LINEAR = "LINEAR"


@public
class Graph(ShownInNotebooks):
    """What is to be computed, and where: variables and vertices placed on the tiles of a target.

    Parameters
    ----------
    target:
        The machine to build for, or a device, whose target is taken.
    replication_factor:
        Copies of the graph that run side by side, each on its share of the target's IPUs: `getTarget` is then of one replica.

    Raises
    ------
    PoplarTypeError
        If `target` is neither a `Target` nor a `Device`.
    InvalidOption
        If the target's IPUs cannot be divided into so many replicas.

    Examples
    --------
    >>> from pypoplar import FLOAT, Engine, IPUModel
    >>> from pypoplar.program import Copy
    >>> device = IPUModel("tiny").createDevice()
    >>> graph = Graph(device)
    >>> x = graph.addConstant(FLOAT, [4], [1.0, 2.0, 3.0, 4.0], "x")
    >>> y = graph.addVariable(FLOAT, [4], "y")
    >>> graph.setTileMapping(x, 0)
    >>> graph.setTileMapping(y, 1)
    >>> graph.createHostRead("y", y)
    >>> engine = Engine(graph, Copy(x, y))
    >>> engine.loadAndRun(device)
    >>> engine.readTensor("y").tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(self, target: Target | Device, replication_factor: int = 1) -> None:
        if isinstance(target, Device):
            target = target.getTarget()
        if not hasattr(target, "getNumTiles"):
            raise PoplarTypeError(
                f"a graph is made for a Target or a Device, got {target!r}; write Graph(IPUModel().createDevice())"
            )
        keep_freed()
        self._replicas = GraphReplicas.of(target, replication_factor)
        self._replication = self._replicas.factor
        self._tiles = self._replicas.tiles
        self._locations = LocationTable()
        self._variables = Variables(self, self._locations)
        self._mapping = MappingTable(self._variables)
        self._vertices = VertexTable(self._variables, self._locations)
        self._registry = CodeletRegistry()
        self._kinds: dict[Any, NumberedCodelet] = {}
        self._estimators: dict[str, RegisteredEstimator] = {}
        self._host = HostConnections()
        self._scope = Scope()
        self._watch = MemoryWatch()

    def createVirtualGraph(self, tiles: int | Iterable[int], upperTile: int | None = None) -> Graph:
        """A graph that sees only some tiles, numbered from 0; variables, vertices and all else are shared with this graph.

        Parameters
        ----------
        tiles:
            The numbers of the tiles in their new order, as in ``createVirtualGraph([4, 5, 9])``; or a number: the first tile if
            `upperTile` is given, else how many tiles of each IPU to take, from its first on.
        upperTile:
            The tile behind the last: ``createVirtualGraph(8, 16)`` takes those in ``[8, 16)``.

        Returns
        -------
        Graph
            The view of this graph; what is added to either is in both.

        Raises
        ------
        InvalidTileMapping
            If no tile is chosen, one twice, or one that this graph does not have.
        PoplarTypeError
            If a tile is no whole number.
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

    @public
    def createReplicatedGraph(self, replicationFactor: int) -> Graph:
        """Divide the graph's IPUs into replicas of equal size: what is added to the graph that is returned exists in each.

        pypoplar has nothing beside the replicas: all variables, vertices and programs belong to the graph that is returned. Where
        the graph has a replication factor of its own, both factors multiply.

        Parameters
        ----------
        replicationFactor:
            How many replicas each of this graph has.

        Returns
        -------
        Graph
            The graph of a replica; its target is that of one.

        Raises
        ------
        InvalidOption
            If the graph's IPUs cannot be divided so.
        PoplarTypeError
            If the factor is no whole number.
        MissingFeature
            If the graph is a virtual one, has been divided already, or has variables or compute sets.
        """
        count = check_factor(replicationFactor, f"the factor of {CREATED}")
        whole, replicas = self._variables.graph, self._replicas
        if self is not whole:
            raise MissingFeature(f"{CREATED} divides a top-level graph; this one sees a part of it")
        if self._tiles is not replicas.tiles:
            raise MissingFeature(f"{CREATED}: the graph has been divided into {replicas.within} replicas already")
        if self._variables.names or self._vertices.set_names:
            raise MissingFeature(
                f"{CREATED} takes a graph without variables and compute sets: pypoplar has nothing beside the replicas"
            )
        replicated = Graph.__new__(Graph)
        replicated.__dict__.update(self.__dict__)
        replicas.tiles = replicated._tiles = Tiles(part_of(self.getTarget(), count, CREATED))
        replicas.within, replicated._replication = count, replicas.factor * count
        whole._tiles = DividedTiles(self.getTarget())
        return replicated

    def getReplicationFactor(self) -> int:
        """The number of replicas of the graph, those of the graph of which it was made included."""
        return self._replication

    def getNonReplicatedTensor(self, tensor: Tensor) -> NonReplicatedTensor:
        """A tensor of all replicas, with the replica's number as a first dimension.

        Parameters
        ----------
        tensor:
            A tensor of this graph.

        Returns
        -------
        NonReplicatedTensor
            What `createHostWrite` and `createHostRead` take: the host writes values for each replica.

        Raises
        ------
        PoplarTypeError
            If the tensor is of another graph.
        """
        return NonReplicatedTensor(self._own(tensor), self._replicas.count)

    def addReplicationIndexConstant(self, name: str = "") -> Tensor:
        """A constant with the number of the replica, from 0: the one thing in which replicas differ from the start.

        Parameters
        ----------
        name:
            The debug name of the constant; ``replicationIndex`` without one.

        Returns
        -------
        Tensor
            UNSIGNED_INT, a scalar without a tile.
        """
        constant = self.addConstant(UNSIGNED_INT, [], 0, name or "replicationIndex")
        if self._replicas.count > 1:
            self._replicas.index.append(constant.variable_numbers()[0])
        return constant

    def trace(self, name: str) -> AbstractContextManager[None]:
        """Put ``layer/`` before the debug names given inside ``with graph.trace("layer"):``.

        Parameters
        ----------
        name:
            What comes before the slash; traces inside each other add up.

        Returns
        -------
        AbstractContextManager[None]
            To be entered by ``with``.
        """
        return self._scope.inside(name)

    # -- codelets -------------------------------------------------------------------------------------------------------------

    def addCodelets(self, *sources: Codelets, compileFlags: str = "") -> bool:
        """Add codelets, so that vertices can be made of them by name or class.

        Those in C++ are translated from their text; docs/cpp-codelets.md has what is taken.

        The path of the running program, ``__file__``, or of an imported module means the classes that it has by now. Adding a
        codelet again changes nothing.

        Parameters
        ----------
        sources:
            Classes, modules, paths of ``.py`` and ``.cpp`` files, an ``io.StringIO`` with a text in C++, or lists of these. A
            `CodeletFileType` among them says what files are whose ending does not; a text behind it is their `compileFlags`.
        compileFlags:
            For C++, as ``"-DSIZE=4 -Iinclude -std=c++17"``: definitions, directories of headers, the standard.

        Returns
        -------
        bool
            True, as in Poplar.

        Raises
        ------
        CodeletError
            If a codelet cannot be translated; the message shows its line.
        CodeletCompileError
            If a file in C++ does not compile, or a flag is unknown.
        FileLoadError
            If there is no such file.
        """
        self._registry.add(collect(told_apart(sources, compileFlags)))
        return True

    def hasCodelet(self, name: str) -> bool:
        """Whether a codelet of that name has been added, or a template of which it is an instance.

        Parameters
        ----------
        name:
            The name of a codelet, as `addVertex` takes it.

        Returns
        -------
        bool
            True if vertices of it can be added.
        """
        return name in self._registry

    def getVertexTypes(self) -> list[str]:
        """The names of all codelets that have been added, as `addVertex` takes them."""
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
        self,
        type: ElementType,
        shape: int | Iterable[int],
        mapping: VariableMappingMethod | str = VariableMappingMethod.NONE,
        name: str = "",
    ) -> Tensor:
        """A new variable as a tensor; ``addVariable(FLOAT, [4, 4], "weights")`` leaves the mapping out.

        Its elements lie in row-major order. What they hold is undefined until something writes them; see also
        `setInitialValue`.

        Parameters
        ----------
        type:
            The type of its elements.
        shape:
            The size of each dimension; ``[]`` for a scalar.
        mapping:
            Where the elements go: by default nowhere yet, so that `setTileMapping` has to follow. A string is the name.
        name:
            Its debug name; variables of the same name are told apart by a suffix.

        Returns
        -------
        Tensor
            All of the variable.

        Raises
        ------
        PoplarTypeError
            If the type is none, the shape no list of whole numbers, the name no string or the mapping no
            `VariableMappingMethod`.
        TensorShapeError
            If a size is negative, or for more than 2**40 elements.
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

    def addConstant(self, type: ElementType, shape: int | Iterable[int], value: ArrayLike, name: str = "") -> Tensor:
        """A new tensor that nothing may write to.

        Parameters
        ----------
        type:
            The type of its elements.
        shape:
            The size of each dimension; ``[]`` for a scalar.
        value:
            A number for all elements, or a list or array with one for each, in row-major order or of the tensor's shape.
        name:
            Its debug name.

        Returns
        -------
        Tensor
            All of the constant, which has no tile yet.

        Raises
        ------
        PoplarTypeError
            If a value is no number or the type cannot hold it.
        TensorShapeError
            If there are not as many values as elements, or in another shape.
        """
        sizes = check_shape(shape)
        shown = self._scope.named(name, "constant")
        values = few_values_of(check_type(type), value, prod(sizes), f"constant {shown!r}", sizes)
        constant = self._new_variable(type, sizes, shown)
        self._variables.constants[len(self._variables.names) - 1] = values
        return constant

    def _new_variable(self, type: ElementType, shape: tuple[int, ...], name: str) -> Tensor:
        self._watch.work(self.holdings)
        return self.variable_numbered(self._variables.add(check_type(type), shape, name, self._locations.note(3)))

    def variable_numbered(self, number: int) -> Tensor:
        """All of a variable or constant, by its number (not part of Poplar).

        Parameters
        ----------
        number:
            One of those of `Tensor.variable_numbers`.

        Returns
        -------
        Tensor
            Of the variable's shape.
        """
        variables, tensor = self._variables, Tensor()
        tensor._variables = variables
        tensor._type = variables.types[number]
        tensor._offset = variables.first[number]
        tensor._shape = variables.shapes[number]
        tensor._strides = row_major(tensor._shape)
        return tensor

    @overload
    def clone(self, type: ElementType, tensor: Tensor, /, name: str = "", method: TensorCloneMethod = ...) -> Tensor: ...
    @overload
    def clone(self, tensor: Tensor, /, name: str = "", method: TensorCloneMethod = ...) -> Tensor: ...
    def clone(
        self, *what: Any, name: str = "", method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES
    ) -> Tensor:
        """A new variable shaped and mapped like a tensor: ``clone(tensor)``, ``clone(tensor, "name")``, ``clone(HALF, tensor)``.

        Parameters
        ----------
        what:
            The tensor, with the clone's element type before it if that differs; `name` and `method` may follow.
        name:
            Its debug name; without one that of the tensor's variables with ``_clone`` behind it.
        method:
            The order of its elements in memory.

        Returns
        -------
        Tensor
            Of the tensor's shape, and of its tiles where it has any; values are not copied.

        Raises
        ------
        PoplarTypeError
            If `what` has no tensor, or one of another graph.
        """
        given = list(what)
        type = check_type(given.pop(0)) if given and isinstance(given[0], ElementType) else None
        tensor = self._own(given.pop(0) if given else None)
        name = given.pop(0) if given else name
        method = given.pop(0) if given else method
        return self._cloned(tensor, 1, name, method, type)[0]

    def cloneN(
        self, tensor: Tensor, N: int, name: str = "", method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES
    ) -> Tensor:
        """N clones of a tensor as one tensor with a new dimension 0 of size N.

        Parameters
        ----------
        tensor:
            What to clone.
        N:
            The number of clones.
        name:
            The debug name of the new variable.
        method:
            The order of its elements in memory.

        Returns
        -------
        Tensor
            Of shape ``[N, *tensor.shape()]``, each index of dimension 0 mapped like `tensor`; values are not copied.

        Raises
        ------
        PoplarTypeError
            If the tensor is of another graph or `N` is no whole number of at least 0.
        """
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
        """Whether all elements of a tensor are of constants.

        Parameters
        ----------
        tensor:
            A tensor of this graph.

        Returns
        -------
        bool
            True for a view of constants alone, and for a tensor without elements.

        Raises
        ------
        PoplarTypeError
            If the tensor is of another graph.
        """
        return all(number in self._variables.constants for number in self._own(tensor).variable_numbers())

    def getConstantValue(self, tensor: Tensor) -> AnyArray:
        """The values of a constant, as an array of the tensor's shape.

        Parameters
        ----------
        tensor:
            A view of constants of this graph.

        Returns
        -------
        AnyArray
            A new array of the tensor's shape and the NumPy type of its elements.

        Raises
        ------
        PoplarTypeError
            If an element is not of a constant.
        """
        if not self.isConstant(tensor):
            raise PoplarTypeError(f"{tensor._described()} is not a constant: its values are known when the program runs")
        if not set(self._replicas.index).isdisjoint(tensor.variable_numbers()):
            raise PoplarTypeError(f"{tensor._described()} is the number of the replica: each has another value")
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
    def setTileMapping(self, what: Tensor | VertexRef | VertexRange, mapping: TileMapping) -> None:
        """Place all elements of a tensor, or a vertex, on a tile; later calls win.

        Parameters
        ----------
        what:
            A tensor, whose every element is placed, a vertex or a range of vertices.
        mapping:
            The number of a tile. For a tensor also the intervals of its flattened view for each tile, ``[[Interval(0, 4)],
            [Interval(4, 8)]]``, or a dict from tiles to intervals; for a range of vertices an array with the tile of each.

        Raises
        ------
        InvalidTileMapping
            For a tile that the graph does not have, and for elements on two tiles.
        PoplarIndexError
            If an interval goes beyond the tensor.
        PoplarTypeError
            If a tile is no whole number, or the tensor or vertex is of another graph.

        Examples
        --------
        >>> from pypoplar import FLOAT, Interval, IPUModel
        >>> graph = Graph(IPUModel("tiny").createDevice())
        >>> x = graph.addVariable(FLOAT, [2, 4])
        >>> graph.setTileMapping(x, {3: [(0, 6)], 5: [(6, 8)]})
        >>> graph.getTileMapping(x)[3]
        [Interval(0, 6)]
        """
        if mapping.__class__ is int and 0 <= mapping < self._tiles.count:
            tile = mapping if self._tiles.numbers is None else self._tiles.numbers[mapping]
            if what.__class__ is VertexRef and what._vertices is self._vertices:
                self._vertices.tile[what._number] = tile
                return
            if what.__class__ is Tensor and what._variables is self._variables:
                try:
                    self._mapping.place(what, tile)
                except MemoryError as error:
                    self._lack_memory(error)
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

        Parameters
        ----------
        tensor:
            A tensor of this graph.
        requireComplete:
            Whether elements without a tile are an error; otherwise the attribute `complete` of the answer says whether all have
            one.

        Returns
        -------
        TileToTensorMapping
            A list with a list of intervals for each tile of the graph; a virtual graph's tiles alone.

        Raises
        ------
        InvalidTileMapping
            If elements have no tile and `requireComplete` is True.
        PoplarTypeError
            If the tensor is of another graph.
        """
        return self._tiles.mapping_of(tensor, *self._mapping.pieces_of(self._own(tensor)), requireComplete)

    def mapped_pieces(self, tensor: Tensor) -> tuple[Int64s, Int64s, Int64s]:
        """What `getTileMapping` answers, as arrays (begin, end, tile) in the order of the tensor (not part of Poplar).

        Parameters
        ----------
        tensor:
            A tensor of this graph.

        Returns
        -------
        tuple[Int64s, Int64s, Int64s]
            Three int64 arrays of one length, ascending by begin: elements ``[begin, end)`` of the flattened tensor are on
            `tile`.

        Raises
        ------
        InvalidTileMapping
            If elements have no tile.
        """
        return self._tiles.pieces_of_mapping(tensor, *self._mapping.pieces_of(self._own(tensor)), True)

    def place_pieces(self, tensor: Tensor, begin: Int64s, end: Int64s, tile: Int64s) -> None:
        """What `setTileMapping` does, of arrays as `mapped_pieces` gives them (not part of Poplar).

        Parameters
        ----------
        tensor:
            A tensor of this graph.
        begin, end, tile:
            Three arrays of one length: elements ``[begin, end)`` of the flattened tensor go to `tile`. No element is named twice.

        Raises
        ------
        InvalidTileMapping
            For a tile that the graph does not have, and for elements on two tiles.
        PoplarIndexError
            If a range goes beyond the tensor.
        PoplarTypeError
            If the tensor is of another graph.
        """
        placed = self._own(tensor)
        tiles = self._tiles.check_many(tile, len(tile), f"the pieces of {tensor._described()}")
        self._tiles.check_pieces(placed, begin, end, tiles)
        self._mapping.place_pieces(placed, begin, end, tiles)

    def place_laid(self, view: Tensor, memory: Tensor, begin: Int64s, end: Int64s, tile: Int64s, layout: Laid) -> None:
        """Map all of a variable as `place_pieces` does, and keep its layout until any element is mapped again (not part of Poplar).

        Parameters
        ----------
        view:
            The variable as the tensor that the layout is of.
        memory:
            All of the variable, in an order of which there are pieces.
        begin, end, tile:
            The pieces, as `place_pieces` takes them.
        layout:
            What `kept_layout` gives; its `tile` is an array of the tiles of its parts.

        Raises
        ------
        InvalidTileMapping
            For a tile that the graph does not have, and for elements on two tiles.
        PoplarIndexError
            If a range goes beyond the variable.
        PoplarTypeError
            If the tensor is of another graph.
        """
        placed, seen = self._own(memory), self._own(view)
        tiles = self._tiles.check_many(tile, len(tile), f"the pieces of {memory._described()}")
        parts = self._tiles.check_many(layout.tile.reshape(-1), layout.tile.size, f"the parts of {memory._described()}")
        self._tiles.check_pieces(placed, begin, end, tiles)
        self._mapping.place_laid(placed, begin, end, tiles, KeptLayout(layout, seen, parts.reshape(layout.tile.shape)))

    def kept_layout(self, tensor: Tensor, shape: tuple[int, ...] | None = None, derive: Derive | None = None) -> KeptLayout | None:
        """How the only variable of a tensor lies: as `place_laid` said, else as is derived, once (not part of Poplar).

        Parameters
        ----------
        tensor:
            A tensor of this graph.
        shape:
            The shape under which a layout is derived; by default the variable's own.
        derive:
            Called with the shape of the variable and the pieces of its mapping, on the whole target's tiles; without it nothing
            is derived.

        Returns
        -------
        KeptLayout | None
            Its tiles by the numbers of this graph, -1 for those that a virtual graph does not see; None if nothing is known.

        Raises
        ------
        PoplarTypeError
            If the tensor is of another graph.
        """
        numbers = self._own(tensor).variable_numbers()
        own = None if shape is None else tuple(ordered(shape, "the shape of kept_layout", "(4, 4)"))
        kept = self._mapping.kept(numbers[0], own, derive) if len(numbers) == 1 else None
        return kept if kept is None else evolve(kept, tile=self._tiles.local(kept.tile))

    def elements_without_tile(self, tensor: Tensor) -> int:
        """How many elements of a tensor have no tile, here or outside a virtual graph (not part of Poplar).

        Parameters
        ----------
        tensor:
            A tensor of this graph.

        Returns
        -------
        int
            Elements; 0 if the tensor is mapped completely.
        """
        if self._mapping.has_all_of(self._own(tensor)):
            return 0
        begin, end, _ = self._mapping.pieces_of(tensor)
        return tensor.numElements() - int((end - begin).sum())

    def getSortedContiguousRegions(
        self, tensor: Tensor, intervals: Intervals, removeAliasedIntervals: bool = False
    ) -> list[list[Interval]]:
        """The intervals of the flattened tensor in the order of memory; those that follow each other there stand in one list.

        Parameters
        ----------
        tensor:
            A tensor of this graph.
        intervals:
            Intervals of the flattened tensor, or ``(begin, end)`` pairs.
        removeAliasedIntervals:
            Whether an element that occurs twice in memory is kept once only.

        Returns
        -------
        list[list[Interval]]
            Intervals of the flattened tensor, one list for each region of memory without gaps.

        Raises
        ------
        PoplarIndexError
            If an interval goes beyond the tensor.
        """
        return sorted_contiguous_regions(self._own(tensor), intervals, removeAliasedIntervals)

    def reorderToSimplify(self, reference: Tensor, others: Iterable[Tensor] = ()) -> tuple[Tensor, list[Tensor]]:
        """`reference` flattened and permuted to lie in the order of memory, and `others` permuted in the same way.

        Parameters
        ----------
        reference:
            The tensor whose order in memory counts.
        others:
            Tensors with as many elements.

        Returns
        -------
        tuple[Tensor, list[Tensor]]
            The views, each of rank 1.

        Raises
        ------
        TensorShapeError
            If one of `others` has another number of elements.
        """
        several = [self._own(other) for other in ordered(others, "the other tensors of reorderToSimplify", TENSORS)]
        return simplified(self._own(reference), several)

    def findUnbroadcastTensor(self, tensor: Tensor) -> Tensor | None:
        """The tensor before it was broadcast, with size 1 (or the period) where it repeats; None if it does not repeat.

        Parameters
        ----------
        tensor:
            A tensor of this graph.

        Returns
        -------
        Tensor | None
            A view of rank `tensor.rank()`, of which `tensor` is a broadcast.
        """
        return unbroadcast(self._own(tensor))

    # -- vertices -------------------------------------------------------------------------------------------------------------

    def addComputeSet(self, name: str = "") -> ComputeSet:
        """A new compute set: vertices that run in parallel, in one step.

        Parameters
        ----------
        name:
            Its debug name; compute sets of the same name are told apart by a suffix.

        Returns
        -------
        ComputeSet
            Empty; `addVertex` fills it and `program.Execute` runs it.
        """
        self._watch.work(self.holdings)
        number = self._vertices.add_set(self._scope.named(name, "computeSet"), self._locations.note())
        return ComputeSet(self._vertices, number)

    @swift
    def addVertex(
        self,
        computeSet: ComputeSet,
        vertexType: VertexType,
        connections: Mapping[str, object] | Iterable[tuple[str, object]] | None = None,
    ) -> VertexRef:
        """A new vertex of a codelet, not yet on a tile.

        Parameters
        ----------
        computeSet:
            A compute set of this graph.
        vertexType:
            The name of the codelet, or its class, which need not have been added.
        connections:
            From field names to tensors or values, a dict or a list of pairs; fields may also be connected later. An edge takes
            a tensor (a `VectorList` one of rank 2, or a list of them), a plain field a value, an Input of a number or a
            `Vector` either.

        Returns
        -------
        VertexRef
            To be placed by `setTileMapping`, and for its fields: ``vertex["x"]``.

        Raises
        ------
        UnknownVertexType
            If there is no such codelet.
        UnknownField
            If the codelet has no such field.
        GraphConnectionError
            If a tensor does not fit its field. Nothing is added then.

        Examples
        --------
        >>> from pypoplar import FLOAT, InOut, IPUModel, Vector, Vertex
        >>> class Double(Vertex):
        ...     x: InOut[Vector[FLOAT]]
        ...
        ...     def compute(self):
        ...         for i in range(len(self.x)):
        ...             self.x[i] *= 2.0
        >>> graph = Graph(IPUModel("tiny").createDevice())
        >>> x = graph.addVariable(FLOAT, [8], "x")
        >>> doubled = graph.addComputeSet("double")
        >>> for tile in range(2):
        ...     half = x[4 * tile : 4 * tile + 4]
        ...     graph.setTileMapping(half, tile)
        ...     vertex = graph.addVertex(doubled, Double, {"x": half})
        ...     graph.setTileMapping(vertex, tile)
        >>> graph.numVertices()
        2
        """
        vertices = self._vertices
        if computeSet.__class__ is not ComputeSet or computeSet._vertices is not vertices:
            raise PoplarTypeError(f"a vertex is added to a compute set of its graph, got {computeSet!r}")
        kind = self._kinds.get(vertexType) or self._kind(vertexType)
        number, place = len(vertices.tile), self._locations.note()
        try:
            vertices.rows.extend((kind.index, computeSet._number, place))
            vertices.tile.append(-1)
            if connections is not None:
                for name, value in connections.items() if connections.__class__ is dict else pairs(connections):
                    vertices.connect(number, kind.slots.get(name) or kind.slot(name), value)
        except MemoryError as error:
            vertices.remove_last(number)
            self._lack_memory(error)
        except BaseException as error:
            vertices.remove_last(number)
            cut(error)
            raise
        return VertexRef(vertices, number, kind)

    def add_vertices(
        self, computeSet: ComputeSet, vertexType: VertexType, connections: Mapping[str, object], tiles: ArrayLike | None = None
    ) -> VertexRange:
        """Add many vertices of one codelet at once, without a loop in Python (not part of Poplar).

        Parameters
        ----------
        computeSet:
            A compute set of this graph.
        vertexType:
            The name of the codelet, or its class.
        connections:
            From field names to tensors or values. Dimension 0 of each tensor goes over the vertices: a `Vector` field takes a
            tensor of rank 2, whose row v goes to vertex v, a scalar field rank 1, a `VectorList` field rank 3, or a list with a
            tensor of rank 2 for each of its rows, whose lengths may differ. A plain field or an Input takes one value, or an
            array with one for each vertex.
        tiles:
            An int array with the tile of each vertex, one tile for all, or None: later.

        Returns
        -------
        VertexRange
            The vertices in order.

        Raises
        ------
        UnknownVertexType
            If there is no such codelet.
        UnknownField
            If the codelet has no such field.
        GraphConnectionError
            If a tensor does not fit its field. Nothing is added then.
        TensorShapeError
            If the sizes of dimension 0 differ, or say nothing of the number of vertices.
        InvalidTileMapping
            For tiles that the graph does not have, or not one for each vertex.

        Examples
        --------
        >>> from pypoplar import FLOAT, InOut, IPUModel, Vector, Vertex
        >>> class Double(Vertex):
        ...     x: InOut[Vector[FLOAT]]
        ...
        ...     def compute(self):
        ...         for i in range(len(self.x)):
        ...             self.x[i] *= 2.0
        >>> graph = Graph(IPUModel("tiny").createDevice())
        >>> x = graph.addVariable(FLOAT, [8], "x")
        >>> graph.setTileMapping(x, {0: [(0, 4)], 1: [(4, 8)]})
        >>> graph.add_vertices(graph.addComputeSet("double"), Double, {"x": x.reshape([2, 4])}, [0, 1])
        <VertexRange of 2 Double>
        """
        vertices = self._vertices
        if computeSet.__class__ is not ComputeSet or computeSet._vertices is not vertices:
            raise PoplarTypeError(f"vertices are added to a compute set of their graph, got {computeSet!r}")
        kind = self._kinds.get(vertexType) or self._kind(vertexType)
        given = [(kind.slots.get(name) or kind.slot(name), value) for name, value in pairs(connections)]
        count = vertices.count_of(kind, given, tiles)
        placed = np.full(count, -1) if tiles is None else self._tiles.check_many(tiles, count, f"vertices of {kind.name}")
        self._watch.work(self.holdings, 1 + count // 1024)
        first = vertices.add_many(kind, computeSet, self._locations.note(), placed)
        try:
            for slot, value in given:
                vertices.connect_many(first, count, slot, value)
        except BaseException:
            vertices.remove_last(first)
            raise
        return VertexRange(vertices, first, count, kind)

    @swift
    def connect(self, field: FieldRef, value: FieldValue) -> None:
        """Connect a field to a tensor, or set a plain field to a value.

        Fields connected twice or never are judged when the Engine is built.

        Parameters
        ----------
        field:
            A field of a vertex of this graph, ``vertex["x"]``, or a row of it, ``vertex["x"][2]``.
        value:
            A tensor, of the rank that the field has: 1 for a `Vector`, 2 for a `VectorList`, which also takes a list of rank 1.
            For a plain field, and for an Input, a number or a list of numbers.

        Raises
        ------
        GraphConnectionError
            For a tensor of the wrong rank or element type, or of another graph.
        PoplarTypeError
            If `field` is no field of this graph, or a value is none that the field can hold.
        """
        try:
            vertex = self._field(field)
            if field._row is None:
                self._vertices.connect(vertex._number, field._slot, value)
            else:
                self._vertices.connect_row(vertex._number, field._slot, field._row, value)
        except MemoryError as error:
            self._vertices.mend()
            self._lack_memory(error)
        except BaseException as error:
            cut(error)
            raise

    def _field(self, field: Any) -> VertexRef:
        """The vertex of a field, which is one of this graph's."""
        if field.__class__ is not FieldRef or field._vertex._vertices is not self._vertices:
            raise PoplarTypeError(f"expected a field of a vertex of this graph, such as vertex['x'], got {field!r}")
        vertex: VertexRef = field._vertex
        return vertex

    def setInitialValue(self, what: FieldRef | Tensor, value: ArrayLike) -> None:
        """What a plain field, or the elements of a variable, hold after `Engine.load`; later calls win, and all over defaults.

        Parameters
        ----------
        what:
            A plain field of a vertex, or a tensor of variables.
        value:
            A number, or as many values as there are elements.

        Raises
        ------
        GraphConnectionError
            If the field is an edge.
        TensorWriteError
            If the tensor has constants or an element twice.
        PoplarTypeError
            If the type cannot hold a value.
        TensorShapeError
            If there are not as many values as elements.
        """
        if isinstance(what, FieldRef):
            try:
                self._vertices.set_value(self._field(what)._number, what._slot, value)
            except MemoryError:
                self._vertices.mend()
                raise
            return
        tensor = self._own(what)
        check_writeable(tensor, "cannot give an initial value to")
        values = few_values_of(tensor._type, value, tensor.numElements(), tensor._described(), tensor._shape)
        self._variables.initial.append((tensor.runs(), values))

    def setFieldSize(self, field: FieldRef, size: int) -> None:
        """The number of elements of a plain vector field: zeros, unless `setInitialValue` or a default gives values.

        Parameters
        ----------
        field:
            A field annotated `Vector` without an edge.
        size:
            Elements.

        Raises
        ------
        GraphConnectionError
            If the field is no plain vector.
        TensorShapeError
            If the size is negative, or the field has values of another number.
        """
        self._vertices.set_size(self._field(field)._number, field._slot, size)

    def setPerfEstimate(self, vertex: VertexRef | VertexRange, cycles: ArrayLike, flops: ArrayLike | None = None) -> None:
        """Say what a vertex costs, to be used instead of what its code costs.

        Parameters
        ----------
        vertex:
            A vertex of this graph, or a range of them.
        cycles:
            Worker cycles, 0 to 2**40; for a range also an array with those of each.
        flops:
            Floating-point operations, for the engine option ``profiler.includeFlopEstimates``; without them the vertex's code
            counts them.

        Raises
        ------
        PoplarTypeError
            If the vertex is of another graph, or an estimate out of its range.
        TensorShapeError
            If there are not as many estimates as vertices.
        """
        self._vertices.set_estimate(vertex, cycles, flops)

    def setCycleEstimate(self, vertex: VertexRef | VertexRange, cycles: ArrayLike) -> None:
        """Say what a vertex costs; the older name of `setPerfEstimate`, which says what is raised.

        Parameters
        ----------
        vertex:
            A vertex of this graph, or a range of them.
        cycles:
            Worker cycles, 0 to 2**40; for a range also an array with those of each.
        """
        self._vertices.set_estimate(vertex, cycles, None)

    def registerPerfEstimator(
        self, vertexType: VertexType, estimator: Callable[[VertexIntrospector, Target], int | VertexPerfEstimate]
    ) -> None:
        """A function that gives worker cycles, or a `VertexPerfEstimate`, for each vertex of a codelet without its own estimate.

        It is asked once for all vertices of a codelet that are equal in the sizes and values that it reads.

        Parameters
        ----------
        vertexType:
            The name or the class of a codelet, or of a template, whose instances the estimator then serves: it sees their types
            by ``vertex.templateArguments()``. The codelet may be added later; a graph that does not have it is refused when the
            Engine is built, with `UnknownVertexType`.
        estimator:
            Called with the vertex and the target of the graph; it returns the vertex's worker cycles, 0 to 2**40.

        Raises
        ------
        PoplarTypeError
            If the estimator cannot be called with two arguments.
        """
        wrong = misfit(estimator, "vertex", "target")
        if wrong:
            raise PoplarTypeError(f"the estimator of {vertexType}: expected a function of a vertex and a target, got {wrong}")
        self._estimators[self._registry.name_of(vertexType)] = RegisteredEstimator(estimator, caller_location())

    def numVertices(self) -> int:
        """The number of vertices of all compute sets of the graph, executed or not."""
        return len(self._vertices.tile)

    def numComputeSets(self) -> int:
        """The number of compute sets of the graph, executed or not."""
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
        """A stream to the device, of which each Copy takes `numElements` elements.

        Parameters
        ----------
        handle:
            The name that `Engine.connectStream` takes.
        type:
            The type of its elements.
        numElements:
            Elements of one transfer, 128 MB at most.
        mode:
            What replicas receive, each its own chunks or all the same.
        options:
            ``splitLimit`` and ``bufferingDepth`` as in Poplar, whole numbers that change nothing here.

        Returns
        -------
        DataStream
            To be the source of a `program.Copy`.

        Raises
        ------
        TensorIOStateError
            If there is a stream of that name.
        StreamMemoryAllocationError
            If a transfer takes more than 128 MB.
        InvalidOption
            For an option that streams do not have.
        """
        return self._host.add_stream(handle, type, numElements, "to device", caller_location(), mode, options)

    def addDeviceToHostFIFO(
        self, handle: str, type: ElementType, numElements: int, options: Mapping[str, str] | None = None
    ) -> DataStream:
        """A stream to the host, to which each Copy gives `numElements` elements.

        Parameters
        ----------
        handle:
            The name that `Engine.connectStream` takes.
        type:
            The type of its elements.
        numElements:
            Elements of one transfer, 128 MB at most.
        options:
            ``splitLimit`` and ``bufferingDepth`` as in Poplar, whole numbers that change nothing here.

        Returns
        -------
        DataStream
            To be the destination of a `program.Copy`.

        Raises
        ------
        TensorIOStateError
            If there is a stream of that name.
        StreamMemoryAllocationError
            If a transfer takes more than 128 MB.
        InvalidOption
            For an option that streams do not have.
        """
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
        """Memory outside the device with `repeats` rows of `numElements` elements, which start as zeros.

        Parameters
        ----------
        handle:
            The name that `Engine.copyToRemoteBuffer` takes.
        type:
            The type of its elements.
        numElements:
            Elements of one row, 128 MB at most.
        repeats:
            The number of rows, at least 1.
        rearrangeOnHost:
            Changes nothing here.
        optimiseMemory:
            Changes nothing here.

        Returns
        -------
        RemoteBuffer
            To be the source or the destination of a `program.Copy`.

        Raises
        ------
        TensorIOStateError
            If there is a remote buffer of that name.
        StreamMemoryAllocationError
            If a row takes more than 128 MB.
        TensorShapeError
            If there is no row.
        """
        return self._host.add_remote_buffer(handle, type, numElements, repeats, caller_location())

    def addHostFunction(
        self, handle: str, inputs: Iterable[tuple[ElementType, int]], outputs: Iterable[tuple[ElementType, int]]
    ) -> HostFunction:
        """A function of the host that `program.Call` calls.

        Parameters
        ----------
        handle:
            The name that `Engine.connectHostFunction` takes.
        inputs:
            A (type, elements) pair for each tensor that it gets.
        outputs:
            A (type, elements) pair for each tensor that it fills.

        Returns
        -------
        HostFunction
            To be called by a `program.Call`.

        Raises
        ------
        TensorIOStateError
            If there is a host function of that name.
        PoplarTypeError
            If the arguments are no such pairs.
        """
        return self._host.add_host_function(handle, inputs, outputs, caller_location())

    def addFunction(self, program: Runnable) -> Function:
        """A program that `program.Call` runs from several places; steps added to a Sequence later are not part of it.

        Parameters
        ----------
        program:
            Any program; it is kept as it is now.

        Returns
        -------
        Function
            To be run by a `program.Call`; its code is there once.

        Raises
        ------
        PoplarTypeError
            If `program` is none.
        """
        if not isinstance(program, Runnable):
            raise PoplarTypeError(f"addFunction takes a program, got {program!r}")
        return self._host.add_function(program.taken(), caller_location())

    def createHostWrite(self, handle: str, tensor: Tensor | NonReplicatedTensor, rearrangeOnHost: bool = False) -> None:
        """Let `Engine.writeTensor` write a tensor under this name.

        Parameters
        ----------
        handle:
            The name, unique among those of host writes.
        tensor:
            A tensor of this graph: the host writes the same values to all replicas; or what `getNonReplicatedTensor` gave: it
            writes other values to each.
        rearrangeOnHost:
            Changes nothing here.

        Raises
        ------
        TensorWriteError
            If the tensor has constants or an element twice.
        TensorIOStateError
            If the name is taken.
        PoplarTypeError
            If the tensor is of another graph.
        """
        written = self._own(tensor.tensor if isinstance(tensor, NonReplicatedTensor) else tensor)
        check_writeable(written, "the host cannot write to")
        self._host.add_handle("host write", handle, written, caller_location())
        if isinstance(tensor, NonReplicatedTensor):
            self._replicas.parted.add(handle)

    def createHostRead(self, handle: str, tensor: Tensor | NonReplicatedTensor, rearrangeOnHost: bool = False) -> None:
        """Let `Engine.readTensor` read a tensor under this name.

        Parameters
        ----------
        handle:
            The name, unique among those of host reads.
        tensor:
            A tensor of this graph, or what `getNonReplicatedTensor` gave; the host reads those of all replicas either way.
        rearrangeOnHost:
            Changes nothing here.

        Raises
        ------
        TensorIOStateError
            If the name is taken.
        PoplarTypeError
            If the tensor is of another graph.
        """
        read = self._own(tensor.tensor if isinstance(tensor, NonReplicatedTensor) else tensor)
        self._host.add_handle("host read", handle, read, caller_location())

    def host(self) -> HostConnections:
        """The tables of streams, handles and functions, which the compiler reads (not part of Poplar)."""
        return self._host

    def replicas(self) -> GraphReplicas:
        """What the graph's replicas have, which the compiler reads (not part of Poplar)."""
        return self._replicas

    # -- for the compiler, and where memory is short ---------------------------------------------------------------------------

    @public
    def to_networkx(self) -> networkx.DiGraph[tuple[str, str]]:
        """The compute graph for networkx: variables and compute sets as nodes, what vertices read and write as edges.

        Not part of Poplar; see `pypoplar.graph.networks.compute_network` for the attributes of nodes and edges.
        """
        return compute_network(self.freeze())

    def outputComputationGraph(self, stream: TextIO, programs: Programs | None = None) -> None:
        """Write the compute graph as Graphviz DOT text; with `programs`, only the compute sets that they execute.

        Parameters
        ----------
        stream:
            A text file that is open for writing.
        programs:
            Programs whose compute sets are shown alone; None: all compute sets.

        Raises
        ------
        PoplarTypeError
            If the stream is no open text file, or `programs` has what is no program of this graph.
        """
        write_computation_graph(stream, self, programs)

    def outputVertexGraph(self, stream: TextIO, programs: Programs | None = None) -> None:
        """Write vertices, their tiles and the elements that they touch as Graphviz DOT text.

        Parameters
        ----------
        stream:
            A text file that is open for writing.
        programs:
            Programs whose compute sets are shown alone; None: all compute sets.

        Raises
        ------
        PoplarTypeError
            As in `outputComputationGraph`.
        """
        write_vertex_graph(stream, self, programs)

    def freeze(self) -> FrozenGraph:
        """The graph as flat arrays, which later changes do not touch; a virtual graph gives the whole of which it is a part."""
        check_estimators(self._estimators, self._registry)
        return freeze(
            self._replicas.tiles.target, self._variables, self._mapping, self._vertices, self._registry.codelets, self._estimators
        )

    def holdings(self) -> Holdings:
        """The sizes of the graph's tables, and which modules most vertices are of (not part of Poplar).

        Returns
        -------
        Holdings
            Rows and bytes of each table, and vertices by module.
        """
        variables = self._variables
        values = sum(map(held_bytes, (*variables.constants.values(), *(own for _, own in variables.initial))))
        tables = (TableSize("variables", len(variables.names), values), *self._vertices.sizes(), *self._mapping.sizes())
        return Holdings(tables, self._vertices.modules())

    def _memory_shortage(self, error: MemoryError) -> PoplarMemoryError:
        """What is raised where the memory of this machine does not suffice (not part of Poplar)."""
        return shortage(error, self.holdings)

    @slow_path
    def _lack_memory(self, error: MemoryError) -> NoReturn:
        raise error

    def look_at_memory(self, holdings: Callable[[], Holdings]) -> None:
        """Warn once if too little memory of this machine is left (not part of Poplar).

        Parameters
        ----------
        holdings:
            What the build holds, for the message; called only where one is told.
        """
        self._watch.look(holdings)
