"""How floating-point operations behave: which results stop the program, and how halves are rounded."""

from __future__ import annotations

from attrs import frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.program.sequence import Sequence, check_sequence
from pypoplar.tracebacks import public


@frozen
class FloatingPointBehaviour:
    """Which floating-point results stop the program: `inv` invalid, `div0` division by zero, `oflo` overflow.

    `esr` (stochastic rounding) and `nanoo` (NaN on overflow of a half) change nothing: halves round to nearest and overflow to
    infinity.
    """

    inv: bool = True
    div0: bool = True
    oflo: bool = True
    esr: bool = True
    nanoo: bool = True


@public
class SetFloatingPointBehaviour(Program):
    """Set the floating-point behaviour of all tiles; see `setFloatingPointBehaviour`."""

    def __init__(self, behaviour: FloatingPointBehaviour, name: str = "") -> None:
        super().__init__(name)
        self.behaviour = behaviour

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()


@public
class SetStochasticRounding(Program):
    """Turn stochastic rounding on or off; see `setStochasticRounding`."""

    def __init__(self, enabled: bool, name: str = "") -> None:
        super().__init__(name)
        self.enabled = enabled

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()


@public
def setFloatingPointBehaviour(graph: Graph, sequence: Sequence, behaviour: FloatingPointBehaviour, name: str = "") -> None:
    """Append a step that sets which floating-point results stop the program from then on."""
    if not isinstance(behaviour, FloatingPointBehaviour):
        raise PoplarTypeError(f"expected a FloatingPointBehaviour, got {behaviour!r}")
    check_sequence(sequence, "setFloatingPointBehaviour")
    sequence.add(SetFloatingPointBehaviour(behaviour, name))


@public
def setStochasticRounding(graph: Graph, sequence: Sequence, enable: bool, name: str = "") -> None:
    """Append a step that turns stochastic rounding of halves on or off."""
    check_sequence(sequence, "setStochasticRounding")
    sequence.add(SetStochasticRounding(bool(enable), name))
