"""Execution strategies: which blocks of a model form a stage, which IPU a stage has, and whether stages overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from attrs import frozen

from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError
from pypoplar.poptorch.enums import AutoStage, Liveness
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.user_log import say_once
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public

BlockId = str


@public
class Stage:
    """One or more blocks of a model that run on one IPU.

    Parameters
    ----------
    block_ids:
        The blocks, by their `user_id`.

    Raises
    ------
    InvalidOption
        For no block.
    PoplarTypeError
        For what is no name.
    """

    def __init__(self, *block_ids: BlockId) -> None:
        if not block_ids:
            raise InvalidOption("Stage takes the user_id of at least one block")
        self._blocks = tuple(checks.text("Stage", block) for block in block_ids)
        self._ipu: int | None = None

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """The names of its blocks, in the order they were given."""
        return self._blocks

    def ipu(self, ipu: int) -> Self:
        """Run the stage on an IPU, whatever its blocks say.

        Parameters
        ----------
        ipu:
            Its number.

        Raises
        ------
        PoplarTypeError, InvalidOption
            For what is no number of an IPU.
        """
        self._ipu = checks.whole_number("Stage.ipu", ipu)
        return self

    @property
    def ipu_number(self) -> int | None:
        """The IPU that was set; None if its blocks decide."""
        return self._ipu

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stage) and (self._blocks, self._ipu) == (other._blocks, other._ipu)

    def __hash__(self) -> int:
        return hash(self._blocks)

    def __repr__(self) -> str:
        return f"Stage({', '.join(map(repr, self._blocks))})" + ("" if self._ipu is None else f".ipu({self._ipu})")


@frozen
class BlockPlace:
    """Where a block of a model runs: the number of its stage, that of its IPU, and the block's name; the number of its phase."""

    stage: int
    ipu: int
    block: BlockId
    phase: int = 0


class ExecutionStrategy:
    """What all strategies are. One without stages numbers them by `auto_stage` as the model's blocks come."""

    overlaps: ClassVar[bool] = False
    """Whether stages work on different micro-batches at the same time."""
    one_ipu: ClassVar[bool] = True
    """Whether a block that begins several times is on the same IPU each time."""

    def __init__(self, stages: Sequence[Stage], auto_stage: AutoStage = AutoStage.SameAsIpu) -> None:
        self.stages = tuple(stages)
        self.auto_stage = auto_stage
        self._numbers: dict[BlockId, int] = {}
        for number, stage in enumerate(self.stages):
            for block in stage.blocks:
                if block in self._numbers:
                    raise InvalidOption(f"{type(self).__name__}: the block {block!r} is in more than one stage")
                self._numbers[block] = number

    def stage(self, block_id: BlockId) -> Stage:
        """The stage of a block; `InvalidOption` for a block that the strategy does not list."""
        return self.stages[self.number_of(block_id)]

    def number_of(self, block_id: BlockId) -> int:
        """The number of a block's stage."""
        if block_id not in self._numbers:
            raise InvalidOption(f"{type(self).__name__} has no block {block_id!r}{nearest_or_all(block_id, self._numbers)}")
        return self._numbers[block_id]

    def places(self) -> StagePlaces:
        """What places a model's blocks as they begin, one after the other."""
        return StagePlaces(self)

    def _phase_of(self, stage: int) -> int:
        """The phase of the stage of a number."""
        return 0

    def _ipu_of(self, stage: int) -> int:
        """The IPU of the stage of a number, where neither it nor its block says one."""
        return stage

    def _check_place(self, stage: int, ipu: int, block: BlockId) -> None:
        """`InvalidOption` if a block of a stage cannot be on an IPU."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # stages change

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.stages)) if self.stages else f"AutoStage.{self.auto_stage.name}"
        return f"{type(self).__name__}({inner})"


class StagePlaces:
    """Gives the blocks of one pass through a model their stages and IPUs."""

    def __init__(self, strategy: ExecutionStrategy) -> None:
        self._strategy = strategy
        self._unnamed = 0
        self._stages: dict[BlockId, int] = {}
        self._ipus: dict[BlockId, int | None] = {}  # of blocks that have begun, as they say it

    def begin(self, user_id: BlockId | None, ipu_id: int | None) -> BlockPlace:
        """The place of a block that begins. One without a name is called by its number among those.

        The IPU is the one that the strategy's stage was given, or the block's, or else the one of the stage's number.
        """
        block = user_id
        if not block:
            block, self._unnamed = str(self._unnamed), self._unnamed + 1
        before = self._ipus.get(block)
        if self._strategy.one_ipu and None not in (before, ipu_id) and before != ipu_id:
            raise InvalidOption(
                f"the block {block!r} begins on IPU {ipu_id}, and began on IPU {before}: blocks of one user_id are one block"
            )
        self._ipus[block] = ipu_id if before is None else before
        if self._strategy.stages:
            number = self._strategy.number_of(block)
            chosen = self._strategy.stages[number].ipu_number
            ipu_id = chosen if chosen is not None else ipu_id
        else:
            number = self._automatic(block, ipu_id)
        ipu = self._strategy._ipu_of(number) if ipu_id is None else ipu_id
        self._strategy._check_place(number, ipu, block)
        return BlockPlace(number, ipu, block, self._strategy._phase_of(number))

    def tell_unused(self) -> None:
        """Say once which blocks of the strategy have not begun."""
        names = [repr(block) for stage in self._strategy.stages for block in stage.blocks if block not in self._ipus]
        if names:
            say_once(f"{type(self._strategy).__name__}: the model has no block {' and none '.join(names)}")

    def _automatic(self, block: BlockId, ipu_id: int | None) -> int:
        if block not in self._stages:
            if self._strategy.auto_stage is AutoStage.SameAsIpu:
                if ipu_id is None:
                    raise InvalidOption(
                        f"the block {block!r} has no ipu_id, which AutoStage.SameAsIpu makes its stage; give it one, or list the "
                        "blocks in the execution strategy"
                    )
                self._stages[block] = ipu_id
            else:
                self._stages[block] = len(self._stages)
        return self._stages[block]


def _stages(call: str, arguments: Sequence[object]) -> list[Stage]:
    """The stages that a strategy is given: each a Stage, a block, or a list of blocks."""
    stages = []
    for argument in arguments:
        if isinstance(argument, Stage):
            stages.append(argument)
        elif isinstance(argument, str):
            stages.append(Stage(argument))
        elif isinstance(argument, list | tuple) and all(isinstance(block, str) for block in argument):
            stages.append(Stage(*argument))
        else:
            raise PoplarTypeError(f"{call} takes an AutoStage, or Stages, names of blocks and lists of them, got {argument!r}")
    return stages


@public
class PipelinedExecution(ExecutionStrategy):
    """Stages that work on successive micro-batches at the same time.

    A pipeline fills, goes round, and empties: with s equal stages m micro-batches take m + s - 1 turns of a stage. Values that a
    later cycle needs are kept in stashes. Results are those of `ShardedExecution`, to the bit. Where stages cannot overlap, they
    run in turn, and a warning says why.

    Parameters
    ----------
    args:
        Stages: each a `Stage`, the name of a block, or a list of them. Without any, or with an `AutoStage`, the blocks of the model
        say which stages there are.

    Raises
    ------
    InvalidOption
        For a block in more than one stage.
    PoplarTypeError
        For anything else.
    """

    overlaps: ClassVar[bool] = True

    def __init__(self, *args: AutoStage | Stage | BlockId | Sequence[BlockId]) -> None:
        if len(args) == 1 and isinstance(args[0], AutoStage):
            super().__init__((), args[0])
        else:
            super().__init__(_stages(type(self).__name__, args))


class ShardedExecution(PipelinedExecution):
    """Stages on several IPUs that work one after the other.

    Parameters
    ----------
    args:
        Stages, as for `PipelinedExecution`.

    Raises
    ------
    InvalidOption, PoplarTypeError
        As from `PipelinedExecution`.
    """

    overlaps: ClassVar[bool] = False


@public
class Phase:
    """Stages of phased execution that run before the next phase begins.

    Parameters
    ----------
    arg:
        Stages; or names of blocks, which form one.

    Raises
    ------
    PoplarTypeError
        For a mixture of both, or anything else.
    """

    def __init__(self, *arg: BlockId | Stage) -> None:
        if arg and all(isinstance(entry, Stage) for entry in arg):
            self.stages = [entry for entry in arg if isinstance(entry, Stage)]
        elif all(isinstance(entry, str) for entry in arg):
            self.stages = [Stage(*(entry for entry in arg if isinstance(entry, str)))]
        else:
            raise PoplarTypeError(f"Phase takes either Stages or names of blocks, got {arg!r}")

    def stage(self, idx: int) -> Stage:
        """A stage of the phase.

        Parameters
        ----------
        idx:
            Its number.

        Returns
        -------
        Stage
            The stage of that number.

        Raises
        ------
        PoplarIndexError
            If there is none.
        """
        if not 0 <= checks.whole_number("Phase.stage", idx) < len(self.stages):
            raise PoplarIndexError(f"Phase.stage: there are {len(self.stages)} stages, got {idx}")
        return self.stages[idx]

    def ipus(self, *ipus: int) -> None:
        """Set the IPU of each of its stages.

        Parameters
        ----------
        ipus:
            A number for each.

        Raises
        ------
        InvalidOption
            If there are more or fewer than stages.
        """
        if len(ipus) != len(self.stages):
            raise InvalidOption(f"Phase.ipus takes one IPU for each of {len(self.stages)} stages, got {len(ipus)}")
        for stage, ipu in zip(self.stages, ipus, strict=True):
            stage.ipu(ipu)


class PhasedExecution(ExecutionStrategy):
    """What both kinds of phased execution are.

    Weights of a phase are on tiles while it runs, and while they are updated; else they are in streaming memory, from which the
    phase brings them, and to which updates take them.
    """

    one_ipu: ClassVar[bool] = False

    def __init__(self, *phases: Phase | list[Stage] | list[BlockId] | list[Phase]) -> None:
        self._phases: list[Phase] = []
        for given in phases:
            if isinstance(given, list) and given and all(isinstance(entry, Phase) for entry in given):
                self._phases += [entry for entry in given if isinstance(entry, Phase)]
            else:
                entries = given if isinstance(given, list) else [given]
                self._phases.append(given if isinstance(given, Phase) else Phase(*entries))
        if not self._phases:
            raise InvalidOption(f"{type(self).__name__} takes the phases, of which there is at least one")
        self._liveness = Liveness.AlwaysLive
        self._separate_backward_phase = False
        self._places = [(phase, index) for phase, one in enumerate(self._phases) for index in range(len(one.stages))]
        super().__init__([stage for phase in self._phases for stage in phase.stages])

    @property
    def separates_backward(self) -> bool:
        """Whether the pass backward begins with a phase of its own."""
        return self._separate_backward_phase or self._liveness is not Liveness.AlwaysLive

    def _phase_of(self, stage: int) -> int:
        """The phase of the stage of a number."""
        return self._places[stage][0]

    def _ipu_of(self, stage: int) -> int:
        """The IPU of the stage of a number, where neither it nor its block says one: the stage's number within its phase."""
        return self._places[stage][1]

    def __repr__(self) -> str:
        told = (self._liveness.name, *(["a separate backward phase"] if self._separate_backward_phase else []))
        phases = (f"Phase({', '.join(map(repr, phase.stages))})" for phase in self._phases)
        return f"{type(self).__name__}({', '.join(phases)}; {', '.join(told)})"

    def phase(self, phase: int) -> Phase:
        """The phase of this number."""
        if checks.whole_number(f"{type(self).__name__}.phase", phase) >= len(self._phases):
            raise PoplarIndexError(f"{type(self).__name__}.phase: there are {len(self._phases)} phases, got {phase}")
        return self._phases[phase]

    def useSeparateBackwardPhase(self, use: bool = True) -> Self:
        """Let the last phase forward and the first one backward be two, each of which brings its weights."""
        self._separate_backward_phase = checks.flag(f"{type(self).__name__}.useSeparateBackwardPhase", use)
        return self


@public
class ParallelPhasedExecution(PhasedExecution):
    """Phases on two groups of IPUs in turn, even ones on IPUs of even numbers. Here a phase begins when the one before has ended.

    Parameters
    ----------
    phases:
        Each a `Phase`, or a list of stages or of names of blocks; or lists of phases.

    Raises
    ------
    InvalidOption
        For no phase, and for a block in more than one stage.
    """

    def _ipu_of(self, stage: int) -> int:
        """The IPU of the stage of a number, where neither it nor its block says one: even or odd as its phase."""
        phase, index = self._places[stage]
        return 2 * index + phase % 2

    def _check_place(self, stage: int, ipu: int, block: BlockId) -> None:
        """`InvalidOption` if a block of a stage cannot be on an IPU."""
        phase = self._phase_of(stage)
        if phase % 2 != ipu % 2:
            raise InvalidOption(
                "When phases are executed in parallel: even phases must run on even IPUs and odd phases on odd IPUs. The block "
                f"{block!r} of phase {phase} is on IPU {ipu}"
            )

    def sendTensorsOffChipAfterFwd(self, off_chip: bool = True) -> Self:
        """Keep tensors off the chip between the passes forward and backward. Here activations stay on tiles, and are told to.

        Parameters
        ----------
        off_chip:
            Whether they are.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        off = checks.flag("ParallelPhasedExecution.sendTensorsOffChipAfterFwd", off_chip)
        _tell_activations("ParallelPhasedExecution.sendTensorsOffChipAfterFwd", off)
        self._liveness = Liveness.OffChipAfterFwd if off else Liveness.AlwaysLive
        return self


@public
class SerialPhasedExecution(PhasedExecution):
    """Phases on one group of IPUs, one after the other.

    Parameters
    ----------
    phases:
        Each a `Phase`, or a list of stages or of names of blocks; or lists of phases.

    Raises
    ------
    InvalidOption
        For no phase, and for a block in more than one stage.
    """

    def setTensorsLiveness(self, liveness: Liveness) -> Self:
        """Say where tensors are between the phases. Here activations stay on tiles, and are told to.

        Parameters
        ----------
        liveness:
            The place.

        Raises
        ------
        PoplarTypeError
            For what is no `Liveness`.
        """
        self._liveness = checks.member("SerialPhasedExecution.setTensorsLiveness", liveness, Liveness)
        _tell_activations("SerialPhasedExecution.setTensorsLiveness", self._liveness is not Liveness.AlwaysLive)
        return self


def _tell_activations(call: str, off_chip: bool) -> None:
    if off_chip:
        say_once(f"{call}: activations stay in the memory of tiles, since pypoplar has weights alone in streaming memory")
