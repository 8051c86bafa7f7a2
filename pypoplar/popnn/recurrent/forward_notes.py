"""Of which forward pass tensors are that a backward pass is given: those that a call made are known, copies are not."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.exceptions import PoplibsError

Settings = Mapping[str, object]


@frozen(eq=False)
class ForwardNote:
    """A forward pass: its call, its debug name, and what its backward pass must have in common with it."""

    call: str
    debug: str
    settings: Settings

    def __str__(self) -> str:
        return f"{self.call} '{self.debug}'"


_NOTES: WeakKeyDictionary[Graph, dict[int, ForwardNote]] = WeakKeyDictionary()  # by the variables of each graph


def note_results(graph: Graph, note: ForwardNote | None, *tensors: Tensor | None) -> None:
    """Note that the variables of tensors, which a call has just made, are of a forward pass."""
    if note is not None:
        notes = _NOTES.setdefault(graph.getTopLevelGraph(), {})
        notes |= {number: note for tensor in tensors if tensor is not None for number in tensor.variable_numbers()}


def note_of(graph: Graph, tensor: Tensor) -> ForwardNote | None:
    """The forward pass that a tensor is of, or None for one that no call made, or several."""
    notes = _NOTES.get(graph.getTopLevelGraph(), {})
    found = {notes.get(int(number)) for number in tensor.variable_numbers()}
    return found.pop() if len(found) == 1 else None


def check_notes(call: str, graph: Graph, settings: Settings, **tensors: Tensor) -> ForwardNote | None:
    """The forward pass of the tensors; `PoplibsError` for those of several, or of one with other settings."""
    known = [(name, note) for name, tensor in tensors.items() if (note := note_of(graph, tensor)) is not None]
    for name, note in known:
        first, whose = known[0]
        if note is not whose:
            raise PoplibsError(f"{call}: {first} and {name} are of one forward pass, got {first} of {whose} and {name} of {note}")
        for setting, value in settings.items():
            before = note.settings.get(setting, value)
            if before != value:
                raise PoplibsError(f"{call}: {name} is of {note} with {setting} {_shown(before)}, not {_shown(value)}")
    return known[0][1] if known else None


def _shown(value: object) -> str:
    return f"[{', '.join(str(int(unit)) for unit in value)}]" if isinstance(value, tuple) else str(getattr(value, "value", value))
