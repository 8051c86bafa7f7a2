"""What all calls that draw random numbers have in common: their arguments, and vertices that know their seed."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from attrs import frozen

from pypoplar.errors import PoplarTypeError, UnknownVertexType
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_vertices import add_vertices_on_tiles
from pypoplar.poputil.arguments import check_call, check_operands, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT, UNSIGNED_INT, ElementType

LARGEST_MODIFIER = 2**32 - 1
MODIFIER = "modifier"  # the first argument of vertices' templates that read theirs
LARGEST = sys.float_info.max


@frozen
class DrawingCall:
    """A call whose arguments are right: nothing has been added to the graph yet."""

    name: str  # "uniform"
    graph: Graph
    seed: Tensor | None
    modifier: int | Tensor
    reference: Tensor
    prog: Sequence
    debug: str  # what the call adds is named below it

    @staticmethod
    def of(
        name: str,
        graph: Graph,
        seed: Tensor | None,
        modifier: int | Tensor,
        reference: Tensor,
        prog: Sequence,
        debugContext: str | None,
    ) -> DrawingCall:
        """The call of so many arguments; `PoplarTypeError` or `PoplibsError` for those that none can have."""
        call = f"poprand.{name}"
        check_call(call, graph, prog, debugContext)
        if isinstance(modifier, Tensor):
            check_modifier(call, graph, modifier)
        else:
            modifier = seed_modifier(call, modifier)
        if seed is not None:
            check_seed(call, graph, seed)
        check_operands(call, graph, reference=reference)
        if not graph.hasCodelet(templateVertex("poprand::Normal", FLOAT)):
            raise UnknownVertexType(f"{call}: the graph does not know poprand's codelets; call poprand.addCodelets(graph) first")
        return DrawingCall(name, graph, seed, modifier, reference, prog, below(debugContext, name))

    @property
    def call(self) -> str:
        """What messages call it: "poprand.uniform"."""
        return f"poprand.{self.name}"

    def check_type(self, what: str, type: ElementType, allowed: tuple[ElementType, ...]) -> None:
        """`PoplarTypeError` for what is no type, `PoplibsError` for one that has no such numbers."""
        if not isinstance(type, ElementType):
            raise PoplarTypeError(f"{self.call}: {what} is an element type such as FLOAT, got {type!r}")
        if type not in allowed:
            raise PoplibsError(f"{self.call} draws {_listed(allowed)}, got {what} {type!r}")

    def number(self, what: str, value: float) -> float:
        """The argument `what` as a float; `PoplarTypeError` for what is no number, `PoplibsError` for NaN and infinity."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            raise PoplarTypeError(f"{self.call}: {what} is a number, got {value!r}")
        number = value if isinstance(value, int) else float(value)  # not every int is a float
        if not -LARGEST <= number <= LARGEST:
            raise PoplibsError(f"{self.call}: {what} is a finite number, got {value!r}")
        return float(number)

    def probability(self, what: str, value: float) -> int:
        """The argument `what`, from 0 to 1, in parts of 2**16, rounded down."""
        number = self.number(what, value)
        if not 0 <= number <= 1:
            raise PoplibsError(f"{self.call}: {what} is from 0 to 1, got {value!r}")
        return int(number * 2**16)

    def check_spread(self, type: ElementType, mean: float, stdDev: float, extent: float) -> None:
        """`PoplibsError` for a negative deviation, and for numbers, as many deviations from the mean, that a type does not have."""
        if stdDev < 0:
            raise PoplibsError(f"{self.call}: stdDev is 0 at least, got {stdDev}")
        farthest, largest = abs(mean) + extent * stdDev, float(np.finfo(type.dtype).max)
        if farthest > largest:
            numbers = f"with mean {mean} and stdDev {stdDev} there are numbers of {farthest:.7g}"
            raise PoplibsError(f"{self.call}: {type!r} ends at {largest:.7g}, and {numbers}")

    def output(self, type: ElementType) -> Tensor:
        """A new tensor shaped and mapped like the reference."""
        return self.graph.clone(type, self.reference, below(self.debug, "out"))

    def draw(self, vertex: str, out: Tensor, values: Mapping[str, float], inputs: Mapping[str, Tensor] | None = None) -> None:
        """Write `out`, of the reference's layout, by instances of a vertex type; the program is extended."""
        if out.numElements() == 0:
            return
        top = self.graph.getTopLevelGraph()  # a virtual graph has tile numbers of its own, and the machine's are wanted
        seed = self.seed
        if seed is None:
            seed = top.addConstant(UNSIGNED_INT, [0], [], below(self.debug, "noSeed"))
            top.setTileMapping(seed, 0)
        modifier, template, edges = self.modifier, [f"poprand::{vertex}"], {"seed": seed}
        if isinstance(modifier, Tensor):
            if self.seed is not None:
                template, edges = [*template, MODIFIER], {**edges, "modifier": modifier}
            modifier = 0
        # In the order of memory a tile's elements are one piece, whatever the view of them.
        flat, others = top.reorderToSimplify(out, list((inputs or {}).values()))
        cs = top.addComputeSet(self.debug)
        add_vertices_on_tiles(
            top,
            cs,
            templateVertex(template[0], *template[1:], out.elementType()),
            {"out": flat, **dict(zip(inputs or {}, others, strict=True))},
            TileRegions.of(top, flat),
            edges=edges,
            values={"seedModifier": modifier, **values},
            tile_field="tile",
        )
        self.prog.add(Execute(cs))


def width_of(type: ElementType) -> dict[str, int]:
    """The field that says how many bits of a draw of 64 each number of a type takes."""
    return {"width": 8 * type.dtype.itemsize}


def seed_modifier(call: str, modifier: int) -> int:
    """The modifier of a seed, 32 bits."""
    number = whole_number(call, "seedModifier", modifier)
    if number > LARGEST_MODIFIER:
        raise PoplibsError(f"{call}: seedModifier is 32 bits, {LARGEST_MODIFIER} at most, got {number}")
    return number


def check_modifier(call: str, graph: Graph, modifier: Tensor) -> None:
    """`PoplibsError` unless a modifier that is a tensor is an UNSIGNED_INT [1] of the graph, with tiles."""
    if modifier.elementType() is not UNSIGNED_INT or modifier.shape() != [1]:
        raise PoplibsError(f"{call}: a seedModifier that is a tensor is UNSIGNED_INT [1], got {modifier!r}")
    check_operands(call, graph, seedModifier=modifier)


def check_seed(call: str, graph: Graph, seed: Tensor) -> None:
    """`PoplarTypeError` or `PoplibsError` unless a seed is an UNSIGNED_INT [2] of the graph, with tiles."""
    if not isinstance(seed, Tensor):
        raise PoplarTypeError(
            f"{call}: the seed is a tensor UNSIGNED_INT [2] or None, got {seed!r}; graph.addConstant makes one of values"
        )
    if seed.elementType() is not UNSIGNED_INT or seed.shape() != [2]:
        raise PoplibsError(f"{call}: the seed is UNSIGNED_INT [2], 64 bits, got {seed!r}")
    check_operands(call, graph, seed)


def _listed(types: tuple[ElementType, ...]) -> str:
    *others, last = map(repr, types)
    return f"{', '.join(others)} or {last}"
