"""Which operations of a model each stage of a pipeline has, forward and backward, and how many cycles behind the first it is."""

from __future__ import annotations

from itertools import pairwise

from attrs import frozen
from torch import fx

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.capture import JointGraph, Pass
from pypoplar.poptorch.lowering.ipu_placement import handed_out, ipus_of_nodes, placed_by_user
from pypoplar.poptorch.options.execution_strategies import BlockPlace


class NotPipelined(Exception):
    """Stages of a model cannot work on different micro-batches at the same time; why, in words."""


@frozen
class Segment:
    """What a stage does of a micro-batch in one pass."""

    rank: int  # in the order of one micro-batch
    direction: Pass
    stage: int
    ipu: int
    offset: int  # cycles of the pipeline from the first segment to this one

    @property
    def name(self) -> str:
        """What reports and messages call it."""
        return f"stage {self.stage} {self.direction.value}"


@frozen(eq=False)
class StageSegments:
    """The segments of a model in the order of one micro-batch, and that of each operation."""

    segments: tuple[Segment, ...]
    of: dict[fx.Node, Segment]
    stages: int

    def on(self, ipu: int, rank: int = 0) -> Segment | None:
        """The first segment from a rank on that is on an IPU."""
        return next((one for one in self.segments[rank:] if one.ipu == ipu), None)


def stage_segments(joint: JointGraph) -> StageSegments:
    """The segments of a model. `NotPipelined` where an operation reads what a later one gives.

    Forward, a stage ends where the next operation is on another IPU; gradients are with their operations. An operation that reads
    from a later segment of its IPU than its own is part of that one.
    """
    ipus = ipus_of_nodes(joint)
    calls = [node for node in joint.graph.nodes if node.op == "call_function"]
    forward = [node for node in calls if placed_by_user(node)]
    places = [ipus[node] for node in forward[:1]]
    places += [ipus[after] for before, after in pairwise(forward) if ipus[before] != ipus[after]]
    segments = _segments(places or [0], training=joint.loss is not None)
    first_backward = len(places or [0])
    now, stage, known, of = 0, 0, dict[int, int](), dict[fx.Node, Segment]()
    for node in calls:
        origin = node.meta.get("origin")
        if handed_out(node) and node.all_input_nodes[0] in of:
            of[node] = of[node.all_input_nodes[0]]
            continue
        if node.meta["pass"] is Pass.FORWARD:
            if origin is not None and ipus[node] != places[now]:
                now += 1
            stage = now
            if origin is not None:
                known.setdefault(id(origin), stage)
            rank = stage
        else:
            stage = known.get(id(origin), stage) if origin is not None else stage
            rank = first_backward + (first_backward - 1 - stage)
        least = max([rank, *(of[one].rank for one in node.all_input_nodes if one in of)])
        segment = next((one for one in segments[least:] if one.ipu == ipus[node]), None)
        if segment is None:
            what = origin or node.name
            raise NotPipelined(f"{what} is on IPU {ipus[node]}, which has no stage behind those that it reads from")
        of[node] = segment
    return StageSegments(segments, of, first_backward)


def _segments(places: list[int], *, training: bool) -> tuple[Segment, ...]:
    """Those of stages on some IPUs."""
    last = len(places) - 1
    segments = [Segment(stage, Pass.FORWARD, stage, ipu, stage) for stage, ipu in enumerate(places)]
    if training:
        backward = [(stage, places[stage]) for stage in reversed(range(len(places)))]
        segments += [Segment(len(segments) + n, Pass.BACKWARD, stage, ipu, last + n) for n, (stage, ipu) in enumerate(backward)]
    return tuple(segments)


def check_order(joint: JointGraph) -> None:
    """`InvalidOption` if an operation of a stage reads what a later stage gives."""
    for node in joint.graph.nodes:
        own = _place(node)
        if own is None or node.meta["pass"] is not Pass.FORWARD:
            continue
        for read in node.all_input_nodes:
            other = _place(read)
            if other is not None and read.meta["pass"] is Pass.FORWARD and other.stage > own.stage:
                raise InvalidOption(
                    f"poptorch.PipelinedExecution: {node.meta['origin']} is of stage {own.stage} (block {own.block!r}) and reads "
                    f"from stage {other.stage} (block {other.block!r}), {read.meta['origin']}: a stage reads from earlier ones "
                    "only; list the stages in the order in which they run"
                )


def _place(node: fx.Node) -> BlockPlace | None:
    origin = node.meta.get("origin")
    return None if origin is None or node.op != "call_function" else origin.place
