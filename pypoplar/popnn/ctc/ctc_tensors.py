"""Tensors that lie as a plan of connectionist temporal classification wants them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.ctc.ctc_plan import LossPlan, Plan, loss_plan
from pypoplar.popnn.ctc.time_chunks import TimeChunks, spread
from pypoplar.poputil.arguments import check_debug, check_graph, element_type, shape_of, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@public
def createDataInput(
    graph: Graph,
    type: ElementType,
    batchSize: int,
    maxTime: int,
    numClasses: int,
    plan: Plan,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor of probabilities for the calls of `popnn.ctc`; a worker has some steps of a sample.

    Parameters
    ----------
    type:
        The element type.
    batchSize:
        How many samples there are, those of the plan.
    maxTime:
        How many steps there are, at most those of the plan.
    numClasses:
        How many classes there are, those of the plan.
    plan:
        One of `ctc.plan`.

    Returns
    -------
    Tensor
        [maxTime, batchSize, numClasses], with tiles.

    Raises
    ------
    PoplibsError
        For sizes that are not those of the plan.
    """
    call = "popnn.ctc.createDataInput"
    check_graph(call, graph)
    limits = loss_plan(call, plan).limits
    return planned_data(
        call, graph, type, {"maxTime": maxTime, "batchSize": batchSize, "numClasses": numClasses}, limits, debugContext
    )


def planned_data(
    call: str,
    graph: Graph,
    type: ElementType,
    sizes: Mapping[str, int],
    limits: tuple[int, int, int],
    debugContext: str | None,
) -> Tensor:
    """`data_input` of sizes by their names, as `check_data_shape` wants them."""
    check_debug(call, debugContext)
    shape = [whole_number(call, *given) for given in sizes.items()]
    check_data_shape(call, shape, limits)
    return data_input(graph, element_type(call, type), shape, below(debugContext, "data"))


def data_input(graph: Graph, type: ElementType, shape: list[int], debug: str) -> Tensor:
    """A tensor [steps, samples, classes] in chunks of steps."""
    time, batch, classes = shape
    data = by_sample(graph.addVariable(type, [batch, time, classes], debug))
    tiles = TimeChunks.of(graph.getTarget(), batch, time).tile_of_steps()
    place_on(graph, data, np.repeat(tiles[..., None], classes, -1))
    return data


def by_sample(data: Tensor) -> Tensor:
    """[steps, samples, classes] as [samples, steps, classes], as it lies; and the other way round."""
    return data.dimShuffle([1, 0, 2])


def check_data(call: str, name: str, data: Tensor, type: ElementType, limits: tuple[int, int, int]) -> None:
    """`PoplibsError` unless a tensor has the type and the shape of a plan."""
    if data.elementType() is not type or data.rank() != 3:
        raise PoplibsError(f"{call}: {name} is {type!r} [time, batch, classes] by the plan, got {data!r}")
    check_data_shape(call, data.shape(), limits)


def check_data_shape(call: str, shape: list[int], limits: tuple[int, int, int]) -> None:
    """`PoplibsError` unless [steps, samples, classes] are those of a plan; steps may be fewer, 1 at least."""
    time, batch, classes = limits
    if shape[1:] != [batch, classes] or not 0 < shape[0] <= time:
        raise PoplibsError(f"{call}: the plan is for [at most {time} steps, {batch} samples, {classes} classes], got {shape}")


@public
def createLabelsInput(
    graph: Graph, type: ElementType, batchSize: int, maxLabelLength: int, plan: Plan, debugContext: str | None = None
) -> Tensor:
    """A new tensor of labels for the calls of `popnn.ctc`.

    Parameters
    ----------
    type:
        The element type; calls take labels of UNSIGNED_INT.
    batchSize:
        How many samples there are, those of the plan.
    maxLabelLength:
        How many symbols there are, at most those of the plan.
    plan:
        One of `ctc.plan`.

    Returns
    -------
    Tensor
        [batchSize, maxLabelLength], with tiles.

    Raises
    ------
    PoplibsError
        For sizes that are not those of the plan.
    """
    call = "popnn.ctc.createLabelsInput"
    check_graph(call, graph)
    loss = loss_plan(call, plan)
    check_debug(call, debugContext)
    shape = [whole_number(call, *given) for given in (("batchSize", batchSize), ("maxLabelLength", maxLabelLength))]
    check_labels_shape(call, shape, loss)
    labels = graph.addVariable(element_type(call, type), shape_of(call, shape), below(debugContext, "labels"))
    tiles = tile_of_pieces(graph, loss)
    place_on(graph, labels, np.repeat(tiles, loss.width, 1)[:, : shape[1]])
    return labels


def check_labels_shape(call: str, shape: list[int], loss: LossPlan) -> None:
    """`PoplibsError` unless [samples, symbols] are those of a plan; symbols may be fewer, 1 at least."""
    if shape[0] != loss.batchSize or not 0 < shape[1] <= loss.maxLabelLength:
        most = loss.maxLabelLength
        raise PoplibsError(f"{call}: the plan is for labels [{loss.batchSize} samples, at most {most} symbols], got {shape}")


def tile_of_pieces(graph: Graph, loss: LossPlan) -> Int64s:
    """[samples, pieces of a label]: the tile of each."""
    shape = loss.batchSize, loss.pieces
    return spread(loss.batchSize * loss.pieces, graph.getTarget().getNumTiles()).reshape(shape)
