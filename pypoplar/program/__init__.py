"""The kinds of programs: what an Engine runs, made of compute sets, copies and control flow.

Programs are light objects. What a constructor's arguments alone decide is checked there; the rest when the Engine is built. Every
program takes a debug name as its last argument. Programs have value semantics, as in Poplar: a `Sequence` or `Switch` put into
another program is taken as it is then, and steps added to it later are not part of that program.

Each kind says what it reads, what it writes, which programs it contains and how control goes through them (`Program`, in `base`),
and keeps its arguments as attributes for the compiler's rule of how it is lowered.
"""

from pypoplar.program.base import Program
from pypoplar.program.branches import If, Switch
from pypoplar.program.calling import Call
from pypoplar.program.clocks import CycleCount as CycleCount
from pypoplar.program.clocks import CycleStamp as CycleStamp
from pypoplar.program.clocks import cycleCount, cycleStamp
from pypoplar.program.copying import Copy, WriteUndef
from pypoplar.program.execute import Execute
from pypoplar.program.floating_point import (
    FloatingPointBehaviour,
    setFloatingPointBehaviour,
    setStochasticRounding,
)
from pypoplar.program.floating_point import SetFloatingPointBehaviour as SetFloatingPointBehaviour
from pypoplar.program.floating_point import SetStochasticRounding as SetStochasticRounding
from pypoplar.program.loops import Repeat, RepeatWhileFalse, RepeatWhileTrue
from pypoplar.program.messages import Abort, AbortOnCondition, ErrorProgram, PrintTensor
from pypoplar.program.replicating import AssumeEqualAcrossReplicas, CrossReplicaCopy
from pypoplar.program.seeds import SetSeed as SetSeed
from pypoplar.program.seeds import setSeed
from pypoplar.program.sequence import Sequence
from pypoplar.program.synchronisation import Sync, SyncType

__all__ = [
    "Abort",
    "AbortOnCondition",
    "AssumeEqualAcrossReplicas",
    "Call",
    "Copy",
    "CrossReplicaCopy",
    "ErrorProgram",
    "Execute",
    "FloatingPointBehaviour",
    "If",
    "PrintTensor",
    "Program",
    "Repeat",
    "RepeatWhileFalse",
    "RepeatWhileTrue",
    "Sequence",
    "Switch",
    "Sync",
    "SyncType",
    "WriteUndef",
    "cycleCount",
    "cycleStamp",
    "setFloatingPointBehaviour",
    "setSeed",
    "setStochasticRounding",
]
