"""Where fields have their largest element, as an expectation."""

from __future__ import annotations

from math import inf

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.host_values import values_of
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.solvers.mesh_grid import linspace, meshgrid2d
from pypoplar.popnn.nonlinearities.nonlinearity_arguments import check_elements
from pypoplar.popnn.nonlinearities.softmax_rows import Softmax
from pypoplar.popops.elements.map_functions import map
from pypoplar.popops.expr import _1, _2
from pypoplar.poputil.arguments import check_call, check_codelet, check_flag
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public


@public
def spatialSoftMax2D(
    graph: Graph,
    prog: Sequence,
    fields: Tensor,
    temperature: float,
    disableSoftmax: bool = False,
    debugContext: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The expected place of the largest element of each field, and the temperature; `prog` is extended.

    The call needs poplin's device code, too.

    Parameters
    ----------
    fields:
        FLOAT or HALF [F, H, W], with elements.
    temperature:
        What a field is divided by before its softmax, a number above 0.
    disableSoftmax:
        Whether the fields, divided by it, are the probabilities already.

    Returns
    -------
    tuple[Tensor, Tensor]
        For each field the expected y and x, [F, 2], from -1 (the first row or column) to 1 (the last); and the temperature, a
        new variable on tile 0 that begins as `temperature`, of the type of the fields.

    Raises
    ------
    PoplibsError
        For another type or shape, and a temperature that is not above 0 and finite.
    PoplarTypeError
        For a temperature that is no number.

    Notes
    -----
    PopLibs drops what its softmax gives, and so multiplies the fields themselves.
    """
    call = "popnn.spatialSoftMax2D"
    check_call(call, graph, prog, debugContext)
    check_elements(call, graph, "fields", fields, debugContext)
    check_flag(call, "disableSoftmax", disableSoftmax)
    check_codelet(call, graph, "poplin::SumPartials<float>")
    if fields.rank() != 3 or fields.numElements() == 0:
        raise PoplibsError(f"{call}: fields are [fields, height, width], and have elements; got {fields!r}")
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        raise PoplarTypeError(f"{call}: temperature is a number, got {temperature!r}")
    type = fields.elementType()
    if not 0 < values_of(type, temperature, 1, f"temperature of {call}")[0] < inf:
        raise PoplibsError(f"{call}: temperature is more than 0 and finite as a {type!r}, got {temperature!r}")
    debug = below(debugContext, "SpatialSoftMax2D")
    count, height, width = fields.shape()
    scale = graph.addVariable(type, [], below(debug, "temperature"))
    graph.setInitialValue(scale, temperature)
    graph.setTileMapping(scale, 0)
    scaled = map(graph, _1 / _2, [fields.reshape([count, height * width]), scale], prog, below(debug, "scaled"))
    if not disableSoftmax:
        Softmax(graph, below(debug, "softmax")).add(prog, scaled, scaled)
    axes = [linspace(graph, type, -1.0, 1.0, size, debug) for size in (width, height)]
    x, y = meshgrid2d(graph, *axes)
    places = concat([y.reshape([height * width, 1]), x.reshape([height * width, 1])], 1)
    return matMul(graph, scaled, places, prog, debug), scale
