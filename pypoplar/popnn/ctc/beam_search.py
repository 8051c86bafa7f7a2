"""The likeliest labels by a beam search: the plan, the tensor of probabilities, and the calls that decode it."""

from __future__ import annotations

from pypoplar.errors import InvalidOption
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.ctc.ctc_loss import check_blank, check_lengths
from pypoplar.popnn.ctc.ctc_plan import (
    Options,
    Plan,
    check_partials,
    check_plan,
    float_type,
    memory_proportion,
    partials_type,
)
from pypoplar.popnn.ctc.ctc_tensors import by_sample, check_data, planned_data
from pypoplar.popnn.ctc.search_plan import SearchPlan, cheapest_lists, check_memory
from pypoplar.popnn.ctc.search_program import SearchProgram
from pypoplar.popnn.nonlinearities.log_softmax import logSoftmax
from pypoplar.popops.elements.cast import cast
from pypoplar.poputil.arguments import check_call, check_codelet, check_graph, check_operands, whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.option_parsing import OptionHandler
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

OPTIONS: dict[str, Kind] = {"partialsType": ("half", "float"), "availableMemoryProportion": float, "sortStageGroups": str}


@public
def plan(
    graph: Graph,
    inType: ElementType,
    batchSize: int,
    maxTime: int,
    numClasses: int,
    beamwidth: int,
    options: Options = None,
) -> Plan:
    """How to spread the search for the likeliest labels over tiles: a sample has a tile, whose workers share its beams.

    Parameters
    ----------
    inType:
        The type of probabilities, FLOAT or HALF.
    batchSize:
        How many samples there are.
    maxTime:
        How many steps a sample has at most.
    numClasses:
        How many classes there are, the blank included; 2 at least.
    beamwidth:
        How many labels are kept after each step.
    options:
        Known are

        - ``partialsType`` ("float"): the type of the probabilities of beams, "half" or "float"; "half" is for `inType` HALF.
        - ``availableMemoryProportion`` (0.6): the part of a tile's memory for the search.
        - ``sortStageGroups``: whole numbers with commas between them; it changes nothing, candidates are not sorted in stages.

    Returns
    -------
    Plan
        For the calls of `popnn.ctc_infer`.

    Raises
    ------
    PoplibsError
        For other types and sizes, and where the memory is too little.
    """
    call = "popnn.ctc_infer.plan"
    check_graph(call, graph)
    chosen = read_options(call, options, OPTIONS)
    _check_groups(call, str(chosen.get("sortStageGroups", "")))
    partials, memory = partials_type(chosen), memory_proportion(call, chosen)
    given = float_type(call, "inType", inType)
    check_partials(call, given, partials)
    batch, time, beams = (
        whole_number(call, name, value, 1)
        for name, value in (("batchSize", batchSize), ("maxTime", maxTime), ("beamwidth", beamwidth))
    )
    classes = whole_number(call, "numClasses", numClasses, 2)
    lists = cheapest_lists(graph.getTarget(), batch, beams)
    search = SearchPlan(given, partials, batch, time, classes, beams, lists)
    check_memory(call, graph.getTarget(), search, memory)
    return Plan.of(search=search)


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
    """A new tensor of probabilities for the calls of `popnn.ctc_infer`; a worker has some steps of a sample.

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
        One of `ctc_infer.plan`.

    Returns
    -------
    Tensor
        [maxTime, batchSize, numClasses], with tiles.

    Raises
    ------
    PoplibsError
        For sizes that are not those of the plan.
    """
    call = "popnn.ctc_infer.createDataInput"
    check_graph(call, graph)
    limits = _search_plan(call, plan).limits
    return planned_data(
        call, graph, type, {"maxTime": maxTime, "batchSize": batchSize, "numClasses": numClasses}, limits, debugContext
    )


@public
def beamSearchDecoderLogProbabilities(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    logProbs: Tensor,
    dataLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    beamwidth: int,
    topPaths: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest labels of each sample, best first, as a prefix beam search finds them; `prog` is extended.

    After each step the `beamwidth` likeliest labels are kept. A data length beyond the time is an error of the run.

    Parameters
    ----------
    logProbs:
        Logarithms of probabilities, [time, batch, classes].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    beamwidth:
        How many labels are kept, as many as in the plan.
    topPaths:
        How many are wanted, `beamwidth` at most.
    plan:
        One of `ctc_infer.plan` for these sizes.
    options:
        There are none.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        The logarithms of the labels' probabilities [batch, topPaths], of the type of `logProbs`; the labels' lengths [batch,
        topPaths], UNSIGNED_INT; and their symbols [batch, topPaths, time], UNSIGNED_INT, which are 0xffffffff behind a label's
        end. Paths for which there is no label are empty, with -65504.

    Raises
    ------
    PoplibsError
        For shapes, types and a `beamwidth` that are not those of the plan, a blank beyond the classes, and more paths than
        beams.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    data = {"logProbs": logProbs}
    return _decoded(graph, data, dataLengths, prog, blankClass, beamwidth, topPaths, plan, debugContext, options)


@public
def beamSearchDecoderLogits(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    logits: Tensor,
    dataLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    beamwidth: int,
    topPaths: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`beamSearchDecoderLogProbabilities` of the logarithms of the softmax of logits; `prog` is extended.

    Parameters
    ----------
    logits:
        What the softmax gets, [time, batch, classes].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    beamwidth:
        How many labels are kept, as many as in the plan.
    topPaths:
        How many are wanted, `beamwidth` at most.
    plan:
        One of `ctc_infer.plan` for these sizes.
    options:
        There are none.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        As of `beamSearchDecoderLogProbabilities`.

    Raises
    ------
    PoplibsError
        For shapes, types and a `beamwidth` that are not those of the plan, a blank beyond the classes, and more paths than
        beams.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    data = {"logits": logits}
    return _decoded(graph, data, dataLengths, prog, blankClass, beamwidth, topPaths, plan, debugContext, options)


def _decoded(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    data: dict[str, Tensor],
    dataLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    beamwidth: int,
    topPaths: int,
    plan: Plan,
    debugContext: str | None,
    options: Options,
) -> tuple[Tensor, Tensor, Tensor]:
    """The results of a call, when all its arguments are judged."""
    ((name, given),) = data.items()
    call = f"popnn.ctc_infer.beamSearchDecoder{'Logits' if name == 'logits' else 'LogProbabilities'}"
    check_call(call, graph, prog, debugContext)
    search = _search_plan(call, plan)
    read_options(call, options, {})
    check_operands(call, graph, **data, dataLengths=dataLengths)
    check_data(call, name, given, search.inType, search.limits)
    check_lengths(call, "dataLengths", dataLengths, search.batchSize)
    blank = check_blank(call, blankClass, search.numClasses)
    if whole_number(call, "beamwidth", beamwidth) != search.beamwidth:
        raise PoplibsError(f"{call}: beamwidth is {search.beamwidth} by the plan, got {beamwidth}")
    paths = whole_number(call, "topPaths", topPaths, 1)
    if paths > search.beamwidth:
        raise PoplibsError(f"{call}: topPaths are {search.beamwidth} at most, as many as there are beams, got {paths}")
    check_codelet(call, graph, "popnn::CTCSelect<float>")
    debug = below(debugContext, "CTCBeamSearchDecoder")
    given = by_sample(given)
    log_probs = by_sample(logSoftmax(graph, given, prog, debug) if name == "logits" else given)
    program = SearchProgram(graph, search, log_probs, dataLengths, blank, prog, debug)
    scores, lengths, labels = program.best_paths(paths)
    return scores if search.inType is FLOAT else cast(graph, scores, search.inType, prog, debug), lengths, labels


def _search_plan(call: str, plan: object) -> SearchPlan:
    """What a plan says of a search; `PoplibsError` where that is nothing."""
    search = check_plan(call, plan).search
    if search is None:
        raise PoplibsError(f"{call} needs a plan of popnn.ctc_infer.plan, got {plan!r}")
    return search


def _check_groups(call: str, text: str) -> None:
    """`InvalidOption` unless a text is whole numbers with commas between them."""
    try:
        OptionHandler.createWithList().parseValue(text)
    except InvalidOption as problem:
        raise InvalidOption(f"{call}: the option 'sortStageGroups' is {text!r}: {problem}") from None
