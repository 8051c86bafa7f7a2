"""Loops of codelets that could be shorter: what they take, why they do not run on vectors, and what aligned vectors save."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from pypoplar.report.execution import Execution
from pypoplar.report.insights.insight import told_line
from pypoplar.report.line_profile import CodeletText, LoopHint

TOLD_LOOP, TOLD_ALIGNED = 0.25, 0.05  # shares of a vertex type's slots from which a loop is told, and what aligned vectors save
CURES = {
    "comparisons": "Take what it reads of fields that are no vectors into locals in front of it (`rate = self.rate`): then fewer"
    " places are left that its stores might overlap with; vectors that are never one tensor, or lists of vectors, can be fewer,"
    " too.",
    "branches": "Write what its branches choose as `min`, `max`, `abs` and products, which vectors have: the sign of `x` is"
    " `min(max(x * 1e30, -1.0), 1.0)`.",
    "one tensor": "Connect what it works on in place as one InOut field.",
}


@frozen
class LoopAdvice:
    """What is told of a vertex type's loops, and what to do; `share` is what the loop takes, or would save, of the type's slots."""

    text: str
    advice: str
    share: float


def loop_advice(execution: Execution, name: str) -> tuple[LoopAdvice, ...]:
    """Of the longest loop of a vertex type that does not run on vectors, and of what aligned vectors save in all."""
    lines = execution.lines
    if lines is None or not lines.compiled or name not in lines.vertex_types:
        return ()
    (text,) = (text for text in lines.texts if text.vertex_type == name)
    executions = [group.executions for group in lines.groups if group.vertex_type == name]
    times = [sum(counts) for counts in zip(*executions, strict=True)]
    slots = [many * sum(part.slots for part in parts) for many, parts in zip(times, text.blocks, strict=True)]
    found = (_scalar_loop(text, slots), _unaligned_loops(text, times, sum(slots)))
    return tuple(advice for advice in found if advice is not None)


def _of_kind(text: CodeletText, *, on_vectors: bool) -> Iterator[LoopHint]:
    return (hint for hint in text.loops if (not hint.reason) is on_vectors)


def _scalar_loop(text: CodeletText, slots: list[int]) -> LoopAdvice | None:
    hint = max(_of_kind(text, on_vectors=False), key=lambda hint: sum(slots[hint.first : hint.end]), default=None)
    share = sum(slots[hint.first : hint.end]) / max(1, sum(slots)) if hint is not None else 0.0
    if hint is None or share < TOLD_LOOP:
        return None
    told = f" Its loop of {told_line(text.lines[hint.line])} takes {share:.1%} of them, one round at a time:"
    told += f" it does not run on vectors ({hint.reason})."
    cure = next((cure for word, cure in CURES.items() if word in hint.reason), "Write it so that it does.")
    return LoopAdvice(told, f"Let the loop of line {text.lines[hint.line].line} run on vectors. {cure}", share)


def _unaligned_loops(text: CodeletText, times: list[int], slots: int) -> LoopAdvice | None:
    hints = list(_of_kind(text, on_vectors=True))
    saved = sum(times[hint.first] * hint.saved for hint in hints)
    if not slots or saved < TOLD_ALIGNED * slots:
        return None
    fields = list(dict.fromkeys(name for hint in hints for name in hint.fields))
    advice = (
        f"Let {' and '.join(fields)} begin at multiples of 8 bytes, `Annotated[Vector[FLOAT], Aligned(8)]`: a load takes two"
        f" elements then, and the vertices {saved / slots:.1%} fewer slots."
    )
    return LoopAdvice("", advice, saved / slots)
