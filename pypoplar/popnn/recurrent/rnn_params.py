"""`popnn.rnn.RnnParams`: type and sizes of a recurrent layer."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from enum import IntEnum
from typing import Any, overload

from pypoplar.braces import NUMBERS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.poputil.arguments import check_graph, check_own, whole_number
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

REALS = (FLOAT, HALF)


def of_sizes(name: str) -> Any:
    """A property of a layer's parameters that is a field of its `rnn`."""

    def set_size(params: Any, value: object) -> None:
        setattr(params.rnn, name, value)

    return property(lambda params: getattr(params.rnn, name), set_size, doc=f"The field `{name}` of the layer's `rnn`.")


def is_order(given: object, units: SequenceOf[IntEnum]) -> bool:
    """Whether `given` lists each unit of a cell once."""
    return isinstance(given, list | tuple) and len(given) == len(units) and all(unit in given for unit in units)


class RnnParams:
    """The sizes of a recurrent layer; they can be set, and calls check them.

    Parameters
    ----------
    dataType:
        The type of all tensors, FLOAT or HALF.
    batchSize:
        How many samples there are.
    layerSizes:
        How many elements of a step and sample go in, and how many come out.
    timeSteps:
        How many steps there are; another name of `maxTimeSteps`.
    maxTimeSteps:
        How many steps there are, or at most.
    varTimeSteps:
        How many steps are computed when the program runs: a tensor of INTs or UNSIGNED_INTs, [1] for all samples or [batchSize]
        for each. What is beyond `maxTimeSteps` counts as that many, what is negative as none.

    Raises
    ------
    PoplibsError
        For other types, numbers below 1, other than two layer sizes, and a tensor of another shape or type.
    PoplarTypeError
        For other classes.
    """

    dataType: ElementType
    batchSize: int
    maxTimeSteps: int
    varTimeSteps: Tensor | None
    layerSizes: list[int]

    __slots__ = tuple(__annotations__)

    @overload
    def __init__(self, dataType: ElementType, batchSize: int, timeSteps: int, layerSizes: Iterable[int]) -> None: ...
    @overload
    def __init__(
        self, dataType: ElementType, batchSize: int, maxTimeSteps: int, varTimeSteps: Tensor | None, layerSizes: Iterable[int]
    ) -> None: ...
    @overloaded("RnnParams")
    def __init__(
        self,
        dataType: ElementType,
        batchSize: int,
        layerSizes: Iterable[int],
        timeSteps: int | None = None,
        maxTimeSteps: int = 0,
        varTimeSteps: Tensor | None = None,
    ) -> None:
        self.dataType, self.batchSize = dataType, batchSize
        self.maxTimeSteps = maxTimeSteps if timeSteps is None else timeSteps
        self.varTimeSteps = varTimeSteps
        self.layerSizes = list(ordered(layerSizes, "layerSizes of RnnParams", NUMBERS))
        self.check("RnnParams")

    @property
    def timeSteps(self) -> int:
        """How many steps there are, another name of `maxTimeSteps`."""
        return self.maxTimeSteps

    @timeSteps.setter
    def timeSteps(self, steps: int) -> None:
        self.maxTimeSteps = steps

    def __repr__(self) -> str:
        steps = f"{self.maxTimeSteps}{'' if self.varTimeSteps is None else ' at most'}"
        return f"RnnParams({self.dataType!r}, {self.batchSize} samples, {steps} steps, layers {self.layerSizes})"

    def check(self, call: str) -> None:
        """Whether the fields make a layer; every call that takes parameters does so.

        Parameters
        ----------
        call:
            The call that asks, for the message.

        Raises
        ------
        PoplibsError
            For the first field that does not fit.
        PoplarTypeError
            For a field of another class.
        """
        if self.dataType not in REALS:
            raise PoplibsError(f"{call}: dataType is FLOAT or HALF, got {self.dataType!r}")
        for name in ("batchSize", "maxTimeSteps"):
            whole_number(call, name, getattr(self, name), 1)
        sizes: object = self.layerSizes
        if not isinstance(sizes, list | tuple):
            raise PoplarTypeError(f"{call}: layerSizes is a list of whole numbers, got {sizes!r}")
        for number, size in enumerate(self.layerSizes):
            whole_number(call, f"layerSizes[{number}]", size, 1)
        if len(self.layerSizes) != 2:
            raise PoplibsError(f"{call}: layerSizes are the elements that go in and those that come out, got {self.layerSizes}")
        if self.varTimeSteps is None:
            return
        given: object = self.varTimeSteps
        if not isinstance(given, Tensor):
            raise PoplarTypeError(f"{call}: varTimeSteps is a tensor or None, got {given!r}")
        if given.shape() not in ([1], [self.batchSize]) or given.elementType() not in (INT, UNSIGNED_INT):
            raise PoplibsError(
                f"{call}: varTimeSteps has an INT or UNSIGNED_INT for all, or for each of {self.batchSize} samples, got {given!r}"
            )

    def check_of(self, call: str, graph: Graph) -> None:
        """`check`, and whether the tensor of steps is one of the graph.

        Parameters
        ----------
        call:
            The call that asks, for the message.

        Raises
        ------
        PoplibsError
            For the first field that does not fit.
        PoplarTypeError
            For a field of another class, and a tensor of another graph.
        """
        check_graph(call, graph)
        self.check(call)
        if self.varTimeSteps is not None:
            check_own(call, graph, varTimeSteps=self.varTimeSteps)

    def getMaxShards(self, graph: Graph) -> int:
        """How many times the tiles that hold a sequence go into the machine, and no more than there are steps."""
        check_graph("RnnParams.getMaxShards", graph)
        used = max(self._layout(graph, output).full_tiles + 1 for output in (False, True))
        most = graph.getTarget().getNumTiles() // used
        return ceiling(self.maxTimeSteps, ceiling(self.maxTimeSteps, most))

    def getInputBytesPerTile(self, graph: Graph) -> int:
        """How many bytes a step's input has on a tile."""
        check_graph("RnnParams.getInputBytesPerTile", graph)
        return self._layout(graph, False).elements_of_tile * self.dataType.size

    def getOutputBytesPerTile(self, graph: Graph) -> int:
        """How many bytes a step's output has on a tile."""
        check_graph("RnnParams.getOutputBytesPerTile", graph)
        return self._layout(graph, True).elements_of_tile * self.dataType.size

    def variableTimeSteps(self) -> bool:
        """Whether a tensor says how many steps are computed."""
        return self.varTimeSteps is not None

    def batchVariableTimeSteps(self) -> bool:
        """Whether a tensor says for each sample how many steps are computed."""
        return self.varTimeSteps is not None and self.varTimeSteps.numElements() > 1

    def _layout(self, graph: Graph, output: bool) -> StepLayout:
        return StepLayout.of(graph, 1, self.batchSize, self.layerSizes[output])


def check_sizes(call: str, graph: Graph, sizes: object) -> None:
    """`PoplibsError` or `PoplarTypeError` for sizes in a layer's parameters that make no layer of the graph."""
    if not isinstance(sizes, RnnParams):
        raise PoplarTypeError(f"{call}: params.rnn is a popnn.rnn.RnnParams, got {sizes!r}")
    sizes.check_of(call, graph)
