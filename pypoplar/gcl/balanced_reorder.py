"""Orders of a tensor's elements in which each replica gets an equal part of what each tile holds."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.graph.graph import Graph
from pypoplar.graph.ordering import elements_in_order
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.placement.tiles_of_elements import tiles_of_elements
from pypoplar.target import check_count
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@public
@frozen(eq=False)
class CollectiveBalancedHostRearrangement:
    """The order for arrays on the host, given by `CollectiveBalancedReorder.getHostRearrangement`.

    Attributes
    ----------
    replicationFactor:
        How many replicas share the tensor.
    totalElementsPerReplica:
        What each of them has, with padding.
    elementMap:
        int64 [replicas, elements]: which element of the flattened tensor stands there, -1 for padding.
    """

    replicationFactor: int
    totalElementsPerReplica: int
    elementMap: Int64s

    def getNumRearrangedTensorElems(self) -> int:
        """How many elements all replicas have together, padding included."""
        return self.replicationFactor * self.totalElementsPerReplica

    def rearrangeForCollective(self, array: ArrayLike) -> AnyArray:
        """An array in the order of replicas: [replicas, elements], with zeros as padding.

        Parameters
        ----------
        array:
            As many elements as the tensor has.

        Returns
        -------
        numpy.ndarray
            Of the same type.

        Raises
        ------
        PoplibsError
            If it has another number of elements.
        """
        flat = np.asarray(array).reshape(-1)
        self._check(flat, int((self.elementMap >= 0).sum()))
        taken = flat[np.maximum(self.elementMap, 0)] if len(flat) else np.zeros(self.elementMap.shape, flat.dtype)
        return np.where(self.elementMap >= 0, taken, np.zeros(1, flat.dtype))

    def undoRearrangeForCollective(self, array: ArrayLike) -> AnyArray:
        """The flattened tensor's array, from one in the order of replicas.

        Parameters
        ----------
        array:
            What `rearrangeForCollective` gives, of any shape.

        Returns
        -------
        numpy.ndarray
            Of rank 1 and the same type, without padding.

        Raises
        ------
        PoplibsError
            If it has another number of elements.
        """
        flat = np.asarray(array).reshape(-1)
        self._check(flat, self.getNumRearrangedTensorElems())
        result = np.zeros(int((self.elementMap >= 0).sum()), flat.dtype)
        held = self.elementMap.reshape(-1) >= 0
        result[self.elementMap.reshape(-1)[held]] = flat[held]
        return result

    @staticmethod
    def _check(flat: AnyArray, elements: int) -> None:
        if len(flat) != elements:
            raise PoplibsError(f"expected an array of {elements:,} elements, got one of {len(flat):,}")


@public
@frozen(eq=False)
class CollectiveBalancedReorder:
    """An order of a tensor's elements in which each replica gets an equal part of what each tile holds.

    What is gathered or scattered in this order stays on its tiles: weights that replicas share, each with a part of them in a
    remote buffer. A tile's elements are padded to a multiple of the number of replicas. Variables are made in `graph`, with names
    that begin with `debugContext`.

    Parameters
    ----------
    tensor:
        The tensor of one replica, as programs use it; each element has a tile.
    replicationFactor:
        How many replicas share it.

    Raises
    ------
    PoplibsError
        If the tensor is empty.
    InvalidTileMapping
        If an element has no tile.
    InvalidOption
        If `replicationFactor` is no whole number of 1 at least.
    """

    graph: Graph
    tensor: Tensor
    replicationFactor: int = field()
    debugContext: str = ""

    @replicationFactor.validator
    def _check(self, _: object, value: object) -> None:
        check_count("replicationFactor", value)

    def __attrs_post_init__(self) -> None:
        check_operands("gcl.CollectiveBalancedReorder", self.graph, self.tensor)
        if self.tensor.numElements() == 0:
            raise PoplibsError(f"gcl.CollectiveBalancedReorder: there is nothing to order in {self.tensor!r}")

    @cached_property
    def _columns(self) -> tuple[Int64s, Int64s]:
        """Tiles that hold something, and how many elements of what each holds a replica has, with padding."""
        tiles, held = np.unique(self._tile_of, return_counts=True)
        return tiles, -(-held // self.replicationFactor)

    @cached_property
    def _tile_of(self) -> Int64s:
        """The tile of each element of the flattened tensor."""
        return tiles_of_elements(self.graph, self.tensor.flatten())

    @cached_property
    def _element_map(self) -> Int64s:
        """int64 [replicas, elements]: which element of the flattened tensor stands there, -1 for padding."""
        tiles, sizes = self._columns
        places = np.argsort(self._tile_of, kind="stable")
        first = np.searchsorted(self._tile_of[places], tiles)
        which = np.searchsorted(tiles, self._tile_of[places])
        replica, column = np.divmod(np.arange(len(places)) - first[which], sizes[which])
        elements = np.full((self.replicationFactor, int(sizes.sum())), -1, np.int64)
        elements[replica, offsets(sizes)[which] + column] = places
        return elements

    def getHostRearrangement(self) -> CollectiveBalancedHostRearrangement:
        """The same order for arrays on the host, such as those that remote buffers are filled with.

        Returns
        -------
        CollectiveBalancedHostRearrangement
            It needs no graph any more.
        """
        return CollectiveBalancedHostRearrangement(self.replicationFactor, self._element_map.shape[1], self._element_map)

    def createReplicaSlice(self, type: ElementType) -> Tensor:
        """A new tensor for the part of one replica, each element on the tile of those that it is of.

        Parameters
        ----------
        type:
            Of its elements.

        Returns
        -------
        Tensor
            Of rank 1, with as many elements as each replica has.
        """
        return self._create(type, 1, "replicaSlice")[0]

    def createCollectivesTensor(self, type: ElementType, debugPrefix: str = "") -> Tensor:
        """A new tensor for the parts of all replicas, one behind the other, as collectives give and take them.

        Parameters
        ----------
        type:
            Of its elements.
        debugPrefix:
            The beginning of its name, before that of the order.

        Returns
        -------
        Tensor
            Of rank 1; its elements lie on the tiles of those of the tensor, padding beside them.
        """
        return self._create(type, self.replicationFactor, "collectives", debugPrefix).flatten()

    def _create(self, type: ElementType, rows: int, name: str, prefix: str = "") -> Tensor:
        tiles, sizes = self._columns
        named = "/".join(text for text in (prefix, self.debugContext, name) if text)
        made = self.graph.addVariable(type, [rows, int(sizes.sum())], named)
        bounds = offsets(np.tile(sizes, rows))
        self.graph.place_pieces(made, bounds[:-1], bounds[1:], np.tile(tiles, rows))
        return made

    def undoRearrangeForCollective(self, tensor: Tensor) -> Tensor:
        """A view of what is in the order of replicas, in the order and shape of the tensor, without padding.

        Parameters
        ----------
        tensor:
            As many elements as `createCollectivesTensor` gives.

        Returns
        -------
        Tensor
            A view of its elements.

        Raises
        ------
        PoplibsError
            If it has another number of elements.
        """
        check_operands("gcl.CollectiveBalancedReorder", self.graph, tensor)
        order = self._element_map.reshape(-1)
        if tensor.numElements() != len(order):
            raise PoplibsError(f"expected a tensor of {len(order):,} elements, as all replicas have, got {tensor!r}")
        places = np.empty(self.tensor.numElements(), np.int64)
        held = np.flatnonzero(order >= 0)
        places[order[held]] = held
        return elements_in_order(tensor, places).reshape(self.tensor.shape())
