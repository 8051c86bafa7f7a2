"""Seeds of all generators of the machine."""

from __future__ import annotations

from pypoplar import program
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poprand.drawing_call import check_seed, seed_modifier
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public


@public
def setSeed(graph: Graph, masterSeed: Tensor, seedModifier: int, prog: Sequence, debugContext: str | None = None) -> None:
    """Seed the generators of all workers of the machine; `prog` is extended.

    It is `pypoplar.setSeed`. A call with this seed and modifier draws what the first call without a seed draws after it.

    Parameters
    ----------
    masterSeed:
        UNSIGNED_INT [2]: 64 bits.
    seedModifier:
        32 bits more, from 0 to 2^32 - 1.

    Raises
    ------
    PoplibsError
        For another seed or modifier.
    InvalidTileMapping
        If the seed has no tile.
    """
    check_call("poprand.setSeed", graph, prog, debugContext)
    check_seed("poprand.setSeed", graph, masterSeed)
    modifier = seed_modifier("poprand.setSeed", seedModifier)
    program.setSeed(graph.getTopLevelGraph(), masterSeed, modifier, prog, below(debugContext, "setSeed"))
