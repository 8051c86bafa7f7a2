"""Parameters and weights of GRU layers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import overload

from attrs import define

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.recurrent.cell_functions import check_activation
from pypoplar.popnn.recurrent.rnn_params import RnnParams, check_sizes, is_order, of_sizes
from pypoplar.poputil.arguments import check_flag
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


class BasicGruCellUnit(IntEnum):
    """The units of a GRU cell: its gates, and the candidate for its output.

    Attributes
    ----------
    BASIC_GRU_CELL_RESET_GATE:
        How much of the output before goes into the candidate.
    BASIC_GRU_CELL_UPDATE_GATE:
        How much of the output before stays.
    BASIC_GRU_CELL_CANDIDATE:
        What the rest of the output becomes.
    BASIC_GRU_CELL_NUM_UNITS:
        How many units there are.
    """

    BASIC_GRU_CELL_RESET_GATE = 0
    BASIC_GRU_CELL_UPDATE_GATE = 1
    BASIC_GRU_CELL_CANDIDATE = 2
    BASIC_GRU_CELL_NUM_UNITS = 3


GRU_UNITS = 3


@public
def getDefaultBasicGruCellOrder() -> list[BasicGruCellUnit]:
    """The order of a cell's units in weights and biases unless `GruParams.cellOrder` has another one.

    It is reset gate, update gate, candidate.
    """
    return [BasicGruCellUnit(number) for number in range(GRU_UNITS)]


class GruParams:
    """A GRU layer: sizes, and how it is computed.

    The field `rnn` has the sizes, a `popnn.rnn.RnnParams`; to set `dataType`, `batchSize`, `timeSteps` or `layerSizes` sets
    that of `rnn` (PopLibs: nothing). Further fields to be set: `outputFullSequence` (true: the output of each step is the
    result, else that of the last), `calcInputGradients` (true), `cellOrder` (of units in weights and biases) and `resetAfter`
    (false; true applies the reset gate behind the candidate's product with the output before, which has a bias of its own
    then).

    Parameters
    ----------
    other:
        Parameters that are copied, instead of all others.
    dataType:
        The type of all tensors, FLOAT or HALF.
    batchSize:
        How many samples there are.
    layerSizes:
        How many elements of a step and sample go in, and how many come out.
    timeSteps:
        How many steps there are; beside `maxTimeSteps` a tensor of how many are computed, as ``varTimeSteps`` of
        `popnn.rnn.RnnParams`, or None.
    maxTimeSteps:
        How many steps there are at most.
    activation:
        The non-linearity of the candidate: TANH, SIGMOID, HARD_SIGMOID or RELU.
    recurrentActivation:
        That of the gates.

    Raises
    ------
    PoplibsError
        For other types and sizes. Non-linearities are looked at by calls.
    """

    rnn: RnnParams
    outputFullSequence: bool
    calcInputGradients: bool
    cellOrder: list[BasicGruCellUnit]
    resetAfter: bool
    activation: NonLinearityType
    recurrentActivation: NonLinearityType

    __slots__ = tuple(__annotations__)

    @overload
    def __init__(self, other: GruParams) -> None: ...
    @overload
    def __init__(
        self,
        dataType: ElementType,
        batchSize: int,
        timeSteps: int,
        layerSizes: Iterable[int],
        activation: NonLinearityType = NonLinearityType.TANH,
        recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID,
    ) -> None: ...
    @overload
    def __init__(
        self,
        dataType: ElementType,
        batchSize: int,
        maxTimeSteps: int,
        timeSteps: Tensor | None,
        layerSizes: Iterable[int],
        activation: NonLinearityType = NonLinearityType.TANH,
        recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID,
    ) -> None: ...
    @overloaded("GruParams")
    def __init__(
        self,
        other: GruParams | None = None,
        dataType: ElementType | None = None,
        batchSize: int = 0,
        layerSizes: Iterable[int] = (),
        timeSteps: int | Tensor | None = None,
        maxTimeSteps: int | None = None,
        activation: NonLinearityType = NonLinearityType.TANH,
        recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID,
    ) -> None:
        if other is not None:
            for name in self.__slots__:
                setattr(self, name, getattr(other, name))
            self.rnn, self.cellOrder = RnnParams(*(getattr(other.rnn, name) for name in RnnParams.__slots__)), list(other.cellOrder)
            return
        assert dataType is not None
        if maxTimeSteps is None:
            assert isinstance(timeSteps, int)
            self.rnn = RnnParams(dataType, batchSize, timeSteps, layerSizes)
        else:
            assert not isinstance(timeSteps, int)
            self.rnn = RnnParams(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes)
        self.outputFullSequence = self.calcInputGradients = True
        self.cellOrder = getDefaultBasicGruCellOrder()
        self.resetAfter = False
        self.activation, self.recurrentActivation = activation, recurrentActivation

    dataType = of_sizes("dataType")
    batchSize = of_sizes("batchSize")
    timeSteps = of_sizes("maxTimeSteps")
    layerSizes = of_sizes("layerSizes")

    def __repr__(self) -> str:
        return f"GruParams({self.rnn!r})"

    def check_of(self, call: str, graph: Graph) -> None:
        """Whether the fields make a layer of the graph; every call that takes parameters does so.

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
        MissingFeature
            For another non-linearity.
        """
        check_sizes(call, graph, self.rnn)
        for name in ("outputFullSequence", "calcInputGradients", "resetAfter"):
            check_flag(call, name, getattr(self, name))
        if not is_order(self.cellOrder, getDefaultBasicGruCellOrder()):
            raise PoplibsError(f"{call}: cellOrder has each of the three units of a cell once, got {self.cellOrder}")
        check_activation(call, "activation", self.activation)
        check_activation(call, "recurrentActivation", self.recurrentActivation)

    @property
    def places(self) -> list[int]:
        """Where reset gate, update gate and candidate stand in weights."""
        return [self.cellOrder.index(unit) for unit in getDefaultBasicGruCellOrder()]


@public
@define
class GruWeights:
    """Weights and biases of a layer, or their gradients, of its three units each in ``params.cellOrder``.

    Parameters
    ----------
    inputWeights:
        [3, layerSizes[0], layerSizes[1]].
    outputWeights:
        [3, layerSizes[1], layerSizes[1]].
    biases:
        [3, layerSizes[1]], or with ``params.resetAfter`` [3, 2, layerSizes[1]]: of the input's product, and of that of the
        output before.
    """

    inputWeights: Tensor | None = None
    outputWeights: Tensor | None = None
    biases: Tensor | None = None


def check_gru(call: str, graph: Graph, params: object) -> GruParams:
    """The argument `params` of a call."""
    if not isinstance(params, GruParams):
        raise PoplarTypeError(f"{call}: params is a popnn.gru.GruParams, got {params!r}")
    params.check_of(call, graph)
    return params
