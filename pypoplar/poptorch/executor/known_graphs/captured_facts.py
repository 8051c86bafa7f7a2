"""What the host has to know of a captured graph to run its program, where that program is kept."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from torch import fx

from pypoplar.poptorch.capture import InputKind, JointGraph
from pypoplar.poptorch.executor.index_ranges import CheckedIndex, checked_indices
from pypoplar.poptorch.executor.model_key import digest, lines_of, operations_key
from pypoplar.poptorch.executor.tensor_names import named_tensors
from pypoplar.poptorch.lowering.ipu_placement import ipus_needed, stages_of

STATES = (InputKind.PARAMETER, InputKind.BUFFER)  # inputs that the host writes and reads by their names


@frozen
class StateTensor:
    """A parameter or buffer, by its name in the module."""

    name: str
    kind: InputKind


@frozen
class PlainResult:
    """A result of a module that is no tensor."""

    value: Any


@frozen(eq=False)
class GraphFacts:
    """A captured graph without its operations, which are told by digests alone."""

    arguments: tuple[str, ...]  # in the order of a call's, flattened
    state: tuple[StateTensor, ...]
    results: tuple[PlainResult | None, ...]  # flattened; None for those that are tensors of the graph
    structure: Any  # how they are nested
    gradients: tuple[str, ...]  # parameters that have one
    buffers: tuple[str, ...]  # those that a call changes
    changed: tuple[str, ...]  # arguments that a call changes in place
    indices: tuple[CheckedIndex, ...]
    named: tuple[str, ...]  # tensors
    ipus: int
    stages: int
    operations: str  # a digest of them
    lines: str  # a digest of the user's

    @classmethod
    def of(cls, joint: JointGraph, rounds: bool) -> GraphFacts:
        """Those of a graph; a number of IPUs that is no power of two is rounded up if `rounds`."""
        return cls(
            arguments=tuple(one.name for one in joint.arguments()),
            state=tuple(StateTensor(one.name, one.kind) for one in joint.inputs if one.kind in STATES),
            results=tuple(None if isinstance(one, fx.Node) else PlainResult(one) for one in joint.outputs),
            structure=joint.structure,
            gradients=tuple(joint.gradients),
            buffers=tuple(joint.buffers),
            changed=tuple(joint.changed),
            indices=tuple(checked_indices(joint)),
            named=tuple(named_tensors(joint)),
            ipus=ipus_needed(joint, rounds),
            stages=stages_of(joint),
            operations=operations_key(joint),
            lines=digest(lines_of(joint)),
        )
