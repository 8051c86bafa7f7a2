"""How floating-point operations behave: which results stop the program, and how halves are rounded."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.program.sequence import Sequence, check_sequence
from pypoplar.tracebacks import public


@frozen
class FloatingPointBehaviour:
    """Which floating-point results stop the program, and how HALFs are rounded.

    Parameters
    ----------
    inv:
        Whether invalid ones stop it.
    div0:
        Whether divisions by zero stop it.
    oflo:
        Whether overflow stops it.
    esr:
        Whether HALFs are rounded at random, see `setStochasticRounding`.
    nanoo:
        Poplar's NaN on overflow of a HALF; it changes nothing: HALFs overflow to infinity.
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
    """Append a step that sets which floating-point results stop the program from then on, and how HALFs are rounded.

    It holds for all tiles, also those that `graph` has not, from run to run, until another step sets something else. Engines begin
    with stochastic rounding off, and with the exceptions that the option `debug.floatPointOpException` says.

    Parameters
    ----------
    graph:
        The graph of the sequence's programs.
    sequence:
        What the step is added to.
    behaviour:
        What holds from there on.
    name:
        The debug name of the step.

    Raises
    ------
    PoplarTypeError
        If `behaviour` or `sequence` is none.
    """
    if not isinstance(behaviour, FloatingPointBehaviour):
        raise PoplarTypeError(f"expected a FloatingPointBehaviour, got {behaviour!r}")
    check_sequence(sequence, "setFloatingPointBehaviour")
    sequence.add(SetFloatingPointBehaviour(behaviour, name))


@public
def setStochasticRounding(graph: Graph, sequence: Sequence, enable: bool, name: str = "") -> None:
    """Append a step that turns stochastic rounding of HALFs on or off; floating-point exceptions stay as they are set.

    While it is on, every operation of a codelet whose result is rounded to a HALF, conversions among them, gives one of the two
    HALFs around it at random: the upper one with the probability that is the distance from the lower one, in units of the distance
    of the two. Each takes 64 bits of the worker's random generator (see `setSeed`), also where the result is a HALF already.
    Codelets whose class says ``rounding="nearest"`` are excepted, those of poprand among them. Copies, conversions on the host and
    constants in device code are never rounded at random. It takes no cycles.

    It holds for all tiles, also those that `graph` has not, from run to run, until another step sets something else. Engines begin
    with it off.

    Parameters
    ----------
    graph:
        The graph of the sequence's programs.
    sequence:
        What the step is added to.
    enable:
        Whether it is on from there on.
    name:
        The debug name of the step.

    Raises
    ------
    PoplarTypeError
        If `enable` is no bool, or `sequence` is none.
    """
    check_sequence(sequence, "setStochasticRounding")
    if not isinstance(enable, bool | np.bool_):
        raise PoplarTypeError(f"setStochasticRounding takes True or False, got {enable!r}")
    sequence.add(SetStochasticRounding(bool(enable), name))
