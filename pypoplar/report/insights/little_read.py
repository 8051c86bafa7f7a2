"""Fields of which vertices read little: what is gathered for them and never looked at, by executions of the lines that read."""

from __future__ import annotations

import re

from attrs import frozen

from pypoplar.report.execution import Execution, Step
from pypoplar.report.insights.insight import shown
from pypoplar.report.line_profile import CodeletText, VertexGroup
from pypoplar.report.tile_vertices import SizedVertices

AT_ONCE = 4  # elements that one execution may read at most, on vectors
LITTLE = 0.25  # share of a field's elements up to which it is little
_COMMENT = re.compile(r"#.*")


@frozen
class LittleRead:
    """A field of vertices of a type: the elements that it is connected to, and those that the mean vertex reads at most."""

    vertex_type: str
    field: str
    elements: int
    read: int

    def told(self) -> str:
        """The sentence about it."""
        return (
            f" Of the {self.elements:,} elements of {shown(self.field)} that a vertex of {self.vertex_type} is connected to,"
            f" it reads {self.read:,} at most in the mean execution."
        )


def little_read(execution: Execution, exchange: Step) -> LittleRead | None:
    """The longest field of which vertices read little that an exchange gathers for them; None where there is none, or who knows."""
    if execution.lines is None or exchange.program is None or exchange.program.detail != "before":
        return None
    steps = [step for step in execution.steps if step.name == exchange.name and step.type == "OnTileExecute"]
    texts = {text.vertex_type: text for text in execution.lines.texts}
    found = []
    for group in execution.lines.groups:
        if group.compute_set != exchange.name:
            continue
        calls = group.vertices * sum(step.executions for step in steps)
        sized = (one for step in steps for one in execution.slowest_vertices.get(step.number, ()) if one.name == group.vertex_type)
        found += _fields(execution, texts[group.vertex_type], group, next(sized, None), calls)
    arrived = int(exchange.bytesReceivedByTile.max()) / exchange.executions if exchange.bytesReceivedByTile.any() else 0
    # A field of bytes at least, that is a good part of what arrives.
    large = [one for one in found if one.read <= LITTLE * one.elements and 8 * one.elements >= arrived]
    return max(large, key=lambda one: one.elements, default=None)


def _fields(
    execution: Execution, text: CodeletText, group: VertexGroup, vertices: SizedVertices | None, calls: int
) -> list[LittleRead]:
    """The fields of a vertex type whose reads are known: its vectors, for a row of a list goes elsewhere."""
    if vertices is None or not calls or execution.lines is None or "::" in group.vertex_type:
        return []
    slowest = [
        one for one in execution.lines.slowest if (one.compute_set, one.vertex_type) == (group.compute_set, group.vertex_type)
    ]
    vectors = {size.name for one in slowest for size in one.sizes if size.rows is None}
    times = [line.executions for line in execution.lines.lines(group.vertex_type, group.compute_set)]
    found = []
    for size in (size for size in vertices.sizes if size.name in vectors):
        counts = [_reads(line.text, size.name) for line in text.lines]
        if any(count is None for count in counts) or not any(counts):
            continue  # a slice, a row or the whole goes elsewhere: nobody counts what is read of it
        reads = sum(many * (count or 0) for many, count in zip(times, counts, strict=True)) * AT_ONCE * text.workers
        found.append(LittleRead(group.vertex_type, size.name, size.least, -(-reads // calls)))
    return found


def _reads(line: str, name: str) -> int | None:
    """How often a line reads one element of a field; None where it does something else with it."""
    code, count = _COMMENT.sub("", line), 0
    for place in re.finditer(rf"\bself\.{re.escape(name)}_?\b", code):
        if code[place.end() :].startswith("["):
            if ":" in _index(code[place.end() + 1 :]):
                return None
            count += 1
        elif not re.search(r"\blen\($", code[: place.start()]):
            return None
    return count


def _index(rest: str) -> str:
    """What stands in brackets, the first of which is open."""
    depth = 1
    for place, character in enumerate(rest):
        depth += (character == "[") - (character == "]")
        if not depth:
            return rest[:place]
    return ":"  # it goes on in the next line
