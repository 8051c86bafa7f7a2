"""Plans of connectionist temporal classification: how samples, symbols and steps are shared by tiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.popnn.ctc.ctc_cycles import pair_slots
from pypoplar.popnn.ctc.search_plan import SearchPlan
from pypoplar.poputil.arguments import check_graph, element_type, whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

Options = Mapping[str, object] | None

OPTIONS: dict[str, Kind] = {
    "partialsType": ("half", "float"),
    "availableMemoryProportion": float,
    "planConstraints": str,
    "enableReducedClassesInLabel": bool,
}
SIDES = 2  # a piece of a label has a vertex that goes forward and one that goes back
ON_TILE_COPY = 60  # cycles of copies between pieces on one tile


@frozen
class LossPlan:
    """What a loss is planned for, and how many symbols of a label are one piece, which a worker advances by a step."""

    inType: ElementType
    outType: ElementType
    partialsType: ElementType
    batchSize: int
    maxTime: int
    maxLabelLength: int
    numClasses: int
    width: int

    @property
    def limits(self) -> tuple[int, int, int]:
        """Most steps, samples and classes."""
        return self.maxTime, self.batchSize, self.numClasses

    @property
    def pieces(self) -> int:
        """Those of a label; the last has the blank at its end, too."""
        return ceiling(self.maxLabelLength + 1, self.width)

    def __str__(self) -> str:
        sizes = f"{self.batchSize} samples of {self.maxTime} steps, {self.maxLabelLength} symbols and {self.numClasses} classes"
        return f"{sizes}, {self.inType!r} to {self.outType!r} in {self.partialsType!r}: {self.pieces} pieces of {self.width}"


@public
@frozen(repr=False)
class Plan:
    """How a loss or a search is spread over tiles; given by `ctc.plan` and `ctc_infer.plan`.

    ``Plan()`` is the empty plan, which no call takes. Plans are equal if they say the same, and have an order.

    Attributes
    ----------
    loss:
        What a plan of a loss says, else None.
    search:
        What a plan of a search says, else None.
    """

    loss: LossPlan | None = field(default=None, init=False)
    search: SearchPlan | None = field(default=None, init=False)

    @staticmethod
    def of(loss: LossPlan | None = None, search: SearchPlan | None = None) -> Plan:
        """A plan that says something, as the planners make it.

        Parameters
        ----------
        loss:
            What it says of a loss.
        search:
            What it says of a search.

        Returns
        -------
        Plan
            A plan that is not empty.
        """
        plan = Plan()
        object.__setattr__(plan, "loss", loss)
        object.__setattr__(plan, "search", search)
        return plan

    def __lt__(self, other: Plan) -> bool:
        return repr(self) < repr(other)

    def __repr__(self) -> str:
        if self.search is not None:
            return f"<Plan of a search for {self.search}>"
        return "Plan()" if self.loss is None else f"<Plan of a loss for {self.loss}>"


@public
def plan(
    graph: Graph,
    inType: ElementType,
    outType: ElementType,
    batchSize: int,
    maxTime: int,
    maxLabelLength: int,
    numClasses: int,
    options: Options = None,
) -> Plan:
    """How to spread the loss of connectionist temporal classification over tiles.

    A worker has as many symbols as take the fewest cycles.

    Parameters
    ----------
    inType:
        The type of probabilities, FLOAT or HALF.
    outType:
        The type of losses and gradients, FLOAT or HALF.
    batchSize:
        How many samples there are.
    maxTime:
        How many steps a sample has at most.
    maxLabelLength:
        How many symbols a label has at most.
    numClasses:
        How many classes there are, the blank included.
    options:
        Known are

        - ``partialsType`` ("float"): the type of the probabilities of paths, "half" or "float"; "half" is for `inType` HALF.
        - ``availableMemoryProportion`` (0.6): the part of a tile's memory for them.
        - ``enableReducedClassesInLabel`` (false): it changes nothing, classes are always gathered by the label.
        - ``planConstraints`` raises `MissingFeature`.

    Returns
    -------
    Plan
        For the calls of `popnn.ctc`.

    Raises
    ------
    PoplibsError
        For other types and sizes, and where the memory is too little.
    """
    call = "popnn.ctc.plan"
    check_graph(call, graph)
    chosen = read_options(call, options, OPTIONS)
    if str(chosen.get("planConstraints", "")).strip() not in ("", "{}"):
        raise MissingFeature(f"{call}: the option 'planConstraints' is not there yet")
    partials, memory = partials_type(chosen), memory_proportion(call, chosen)
    given, out = (float_type(call, name, value) for name, value in (("inType", inType), ("outType", outType)))
    check_partials(call, given, partials)
    given_sizes = {"batchSize": batchSize, "maxTime": maxTime, "maxLabelLength": maxLabelLength, "numClasses": numClasses}
    batch, time, symbols, classes = (whole_number(call, name, value, 1) for name, value in given_sizes.items())
    width = _cheapest_width(call, graph.getTarget(), batch, time, symbols, partials.size, memory)
    return Plan.of(LossPlan(given, out, partials, batch, time, symbols, classes, width))


def _cheapest_width(call: str, target: Target, batch: int, time: int, symbols: int, size: int, memory: float) -> int:
    """How many symbols a piece has, so that a step takes the fewest cycles, and what lies on a tile is not more than allowed."""
    tiles, workers = target.getNumTiles(), target.getNumWorkerContexts()
    widths: Int64s = np.arange(1, symbols + 2)
    pairs = -(-batch * -(-(symbols + 1) // widths) // tiles)  # pieces of a tile
    cycles = workers * -(-SIDES * pairs // workers) * pair_slots(widths) + np.where(pairs > 1, ON_TILE_COPY, 0)
    needed = pairs * time * (4 * (widths + 1) + SIDES * 2 * size * widths)
    allowed = memory * target.getBytesPerTile()
    if needed.min() > allowed:
        raise PoplibsError(
            f"{call}: no plan of {batch} samples of {time} steps and {symbols} symbols fits into {allowed:,.0f} bytes of each of "
            f"{tiles} tiles; it takes {needed.min():,}, see the option availableMemoryProportion"
        )
    cycles = np.where(needed > allowed, np.iinfo(np.int64).max, cycles)
    return int(widths[np.argmin(cycles)])


def partials_type(chosen: Mapping[str, object]) -> ElementType:
    """The type of partial results by the options of a plan."""
    return HALF if chosen.get("partialsType") == "half" else FLOAT


def memory_proportion(call: str, chosen: Mapping[str, object]) -> float:
    """The part of a tile's memory for partial results, by the options of a plan."""
    memory = chosen.get("availableMemoryProportion", 0.6)
    assert isinstance(memory, float)
    if not 0 <= memory <= 1:
        raise PoplibsError(f"{call}: the option 'availableMemoryProportion' is from 0 to 1, got {memory:g}")
    return memory


def float_type(call: str, name: str, value: object) -> ElementType:
    """The argument `name` as FLOAT or HALF."""
    type = element_type(call, value)
    if type not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: {name} is FLOAT or HALF, got {type!r}")
    return type


def check_partials(call: str, given: ElementType, partials: ElementType) -> None:
    """Partial results are HALF only of probabilities that are, as in PopLibs."""
    if partials is HALF and given is FLOAT:
        raise PoplibsError(f"{call}: the option partialsType 'half' is for inType HALF, got {given!r}")


def check_plan(call: str, plan: object) -> Plan:
    """`PoplarTypeError` for what is no plan."""
    if not isinstance(plan, Plan):
        raise PoplarTypeError(f"{call}: plan is a Plan, which {call.rpartition('.')[0]}.plan makes, got {plan!r}")
    return plan


def loss_plan(call: str, plan: object) -> LossPlan:
    """What a plan says of a loss; `PoplibsError` where that is nothing."""
    loss = check_plan(call, plan).loss
    if loss is None:
        raise PoplibsError(f"{call} needs a plan of popnn.ctc.plan, got {plan!r}")
    return loss
