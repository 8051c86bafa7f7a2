"""Parameters, weights and states of LSTM layers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import overload

from attrs import define

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.recurrent.cell_functions import check_activation
from pypoplar.popnn.recurrent.rnn_params import RnnParams, check_sizes, is_order, of_sizes
from pypoplar.poputil.arguments import check_flag
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


class BasicLstmCellUnit(IntEnum):
    """The units of an LSTM cell: its gates, and the candidate for its state.

    Attributes
    ----------
    BASIC_LSTM_CELL_FORGET_GATE:
        How much of the state before stays.
    BASIC_LSTM_CELL_INPUT_GATE:
        How much of the candidate is added.
    BASIC_LSTM_CELL_CANDIDATE:
        What is added to the state.
    BASIC_LSTM_CELL_OUTPUT_GATE:
        How much of the state is the output.
    BASIC_LSTM_CELL_NUM_UNITS:
        How many units there are.
    """

    BASIC_LSTM_CELL_FORGET_GATE = 0
    BASIC_LSTM_CELL_INPUT_GATE = 1
    BASIC_LSTM_CELL_CANDIDATE = 2
    BASIC_LSTM_CELL_OUTPUT_GATE = 3
    BASIC_LSTM_CELL_NUM_UNITS = 4


UNITS = 4


@public
def getDefaultBasicLstmCellOrder() -> list[BasicLstmCellUnit]:
    """The order of a cell's units in weights and biases unless `LstmParams.cellOrder` has another one.

    It is forget gate, input gate, candidate, output gate.
    """
    return [BasicLstmCellUnit(number) for number in range(UNITS)]


FLAGS = ("outputFullSequence", "doInputWeightCalc", "calcInputGradients", "preserveFinalState")


class LstmParams:
    """An LSTM layer: sizes, and how it is computed.

    The field `rnn` has the sizes, a `popnn.rnn.RnnParams`; to set `dataType`, `batchSize`, `timeSteps` or `layerSizes` sets
    that of `rnn` (PopLibs: nothing). Further fields to be set: `outputFullSequence` (true: the output of each step is the
    result, else that of the last), `doInputWeightCalc` (true; false leaves the input out, only for measurements),
    `calcInputGradients` (true), `preserveFinalState` (false; true: samples that end early keep their cell state) and
    `cellOrder` (of units in weights and biases).

    Parameters
    ----------
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
        The non-linearity of candidate and cell state: TANH, SIGMOID, HARD_SIGMOID or RELU.
    recurrentActivation:
        That of the gates.

    Raises
    ------
    PoplibsError
        For other types and sizes. Non-linearities are looked at by calls.
    """

    rnn: RnnParams
    outputFullSequence: bool
    doInputWeightCalc: bool
    calcInputGradients: bool
    preserveFinalState: bool
    cellOrder: list[BasicLstmCellUnit]
    activation: NonLinearityType
    recurrentActivation: NonLinearityType

    __slots__ = tuple(__annotations__)

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
    @overloaded("LstmParams")
    def __init__(
        self,
        dataType: ElementType,
        batchSize: int,
        layerSizes: Iterable[int],
        timeSteps: int | Tensor | None = None,
        maxTimeSteps: int | None = None,
        activation: NonLinearityType = NonLinearityType.TANH,
        recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID,
    ) -> None:
        if maxTimeSteps is None:
            assert isinstance(timeSteps, int)
            self.rnn = RnnParams(dataType, batchSize, timeSteps, layerSizes)
        else:
            assert not isinstance(timeSteps, int)
            self.rnn = RnnParams(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes)
        self.outputFullSequence = self.doInputWeightCalc = self.calcInputGradients = True
        self.preserveFinalState = False
        self.cellOrder = getDefaultBasicLstmCellOrder()
        self.activation, self.recurrentActivation = activation, recurrentActivation

    dataType = of_sizes("dataType")
    batchSize = of_sizes("batchSize")
    timeSteps = of_sizes("maxTimeSteps")
    layerSizes = of_sizes("layerSizes")

    def __repr__(self) -> str:
        return f"LstmParams({self.rnn!r})"

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
        for name in FLAGS:
            check_flag(call, name, getattr(self, name))
        if not is_order(self.cellOrder, getDefaultBasicLstmCellOrder()):
            raise PoplibsError(f"{call}: cellOrder has each of the four units of a cell once, got {self.cellOrder}")
        check_activation(call, "activation", self.activation)
        check_activation(call, "recurrentActivation", self.recurrentActivation)

    @property
    def settings(self) -> dict[str, object]:
        """What forward and backward passes have in common, beside sizes."""
        return {
            "cellOrder": tuple(self.cellOrder),
            "activation": self.activation,
            "recurrentActivation": self.recurrentActivation,
            "doInputWeightCalc": self.doInputWeightCalc,
            "varTimeSteps": self.rnn.variableTimeSteps(),
        }

    @property
    def places(self) -> list[int]:
        """Where forget gate, input gate, candidate and output gate stand in weights."""
        return [self.cellOrder.index(unit) for unit in getDefaultBasicLstmCellOrder()]


@public
@define
class LstmState:
    """The state of a layer, or its gradient.

    Parameters
    ----------
    output:
        The output of a step, [batch, layerSizes[1]].
    cellState:
        The cell state behind it, [batch, layerSizes[1]].
    """

    output: Tensor | None = None
    cellState: Tensor | None = None

    def getAsTensor(self) -> Tensor:
        """Both parts as one tensor [2, batch, layerSizes[1]], a view.

        Returns
        -------
        Tensor
            Output and cell state.

        Raises
        ------
        PoplibsError
            If one of the two is None.
        """
        if self.output is None or self.cellState is None:
            raise PoplibsError(f"LstmState.getAsTensor: a state has an output and a cell state, got {self!r}")
        return concat([self.output.expand([0]), self.cellState.expand([0])])


@public
@define
class LstmWeights:
    """Weights and biases of a layer, or their gradients, of its four units each in ``params.cellOrder``.

    Parameters
    ----------
    inputWeights:
        [4, layerSizes[0], layerSizes[1]].
    outputWeights:
        [4, layerSizes[1], layerSizes[1]].
    biases:
        [4, layerSizes[1]].
    """

    inputWeights: Tensor | None = None
    outputWeights: Tensor | None = None
    biases: Tensor | None = None


def check_params(call: str, graph: Graph, params: object) -> LstmParams:
    """The argument `params` of a call."""
    if not isinstance(params, LstmParams):
        raise PoplarTypeError(f"{call}: params is a popnn.lstm.LstmParams, got {params!r}")
    params.check_of(call, graph)
    return params
