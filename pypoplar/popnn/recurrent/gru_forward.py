"""The forward pass of GRU layers, with attention scores or without."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.popnn.recurrent.cell_functions import FUNCTIONS
from pypoplar.popnn.recurrent.forward_notes import ForwardNote, note_results
from pypoplar.popnn.recurrent.gru_layer import GruLayer
from pypoplar.popnn.recurrent.gru_params import GRU_UNITS, GruParams, GruWeights
from pypoplar.popnn.recurrent.recurrent_operands import copied, one_by_one, side_by_side
from pypoplar.popnn.recurrent.recurrent_options import Options
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.elements.map_functions import mapInPlace
from pypoplar.popops.expr import Expr, PlaceHolder, Select
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence


@overload
def gruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    fwdProg: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]: ...
@overload
def gruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    realTimeSteps: Tensor,
    weights: GruWeights,
    fwdProg: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]: ...
@overloaded("popnn.gru.gruFwd")
def gruFwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    fwdProg: Sequence,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The layer's output, and what `gruBwd` needs of each step; `fwdProg` is extended.

    With gates r and u and the candidate c the output is ``u h + (1 - u) c`` of the one before, h; the candidate is that of the
    input and of ``r h``, or with ``params.resetAfter`` r is applied to the product of h. Outputs behind a sample's last step
    are zeros.

    Parameters
    ----------
    params:
        The layer's parameters.
    stateInit:
        The output before the first step, [batch, layerSizes[1]].
    in_:
        The input, [steps, batch, layerSizes[0]].
    weights:
        Weights and biases.
    fwdProg:
        The Sequence that is extended.
    realTimeSteps:
        How many steps of each sample are computed, as ``varTimeSteps`` of `popnn.rnn.RnnParams`, where ``params.rnn`` does not
        say so.
    options:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None]
        The output [steps, batch, layerSizes[1]], or without ``params.outputFullSequence`` that of each sample's last step,
        [batch, layerSizes[1]]; and what the backward pass needs, [steps, matrices, batch, layerSizes[1]], None unless the
        option ``inferenceOnly`` is false.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, and steps in `params` and `realTimeSteps`.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    The input of all steps is multiplied by its weights at once, before the loop. The cell is that of Cho et al., "Learning
    Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation", 2014.
    """
    layer = GruLayer.read("popnn.gru.gruFwd", graph, params, fwdProg, weights, realTimeSteps, debugContext, options, planningCache)
    return forward_pass(layer, stateInit, in_, None, fwdProg)


@overload
def auGruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    attScores: Tensor,
    fwdProg: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]: ...
@overload
def auGruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    realTimeSteps: Tensor,
    weights: GruWeights,
    attScores: Tensor,
    fwdProg: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]: ...
@overloaded("popnn.gru.auGruFwd")
def auGruFwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    attScores: Tensor,
    fwdProg: Sequence,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`gruFwd` with attention: a step's update gate is multiplied by ``1 - attScores[sample, step]``.

    Parameters
    ----------
    params:
        The layer's parameters.
    stateInit:
        The output before the first step, [batch, layerSizes[1]].
    in_:
        The input, [steps, batch, layerSizes[0]].
    weights:
        Weights and biases.
    attScores:
        The scores, [batch, steps]; best of `createAttention`.
    fwdProg:
        The Sequence that is extended.
    realTimeSteps:
        How many steps of each sample are computed, as ``varTimeSteps`` of `popnn.rnn.RnnParams`, where ``params.rnn`` does not
        say so.
    options:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None]
        As of `gruFwd`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, and steps in `params` and `realTimeSteps`.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popnn.gru.auGruFwd"
    layer = GruLayer.read(call, graph, params, fwdProg, weights, realTimeSteps, debugContext, options, planningCache)
    return forward_pass(layer, stateInit, in_, attScores, fwdProg)


def forward_pass(
    layer: GruLayer, stateInit: Tensor, input: Tensor, scores: Tensor | None, prog: Sequence
) -> tuple[Tensor, Tensor | None]:
    """Extend `prog` by the pass of a layer."""
    graph, rnn, type = layer.graph, layer.rnn, layer.rnn.dataType
    layer.check_state("stateInit", stateInit)
    layer.check_input("in_", input)
    rows = None if scores is None else layer.attention_rows(scores, "attScores", prog)
    kept, full = 0 if layer.options.inference_only else layer.kept, layer.params.outputFullSequence
    layout = layer.layout(max(kept + full, 1))
    step = layout.create(graph, type, 1, below(layer.debug, "step"))
    planes = list(layout.shaped(step)[0])
    result = planes[kept] if full or not kept else layer.matrix("output")
    prog.add(Copy(stateInit, result))
    loop, body = StepLoop.of(graph, rnn, False, prog, layer.debug), Sequence()
    weighed = _weighed(layer, input, prog)
    parts = loop.take([weighed] if rows is None else [weighed, rows], body)
    attention = None if rows is None else layer.attention_of(parts[1])
    sums = list(layer.layout(GRU_UNITS).shaped(parts[0])[0])
    cell = GruCell(layer, loop, result, sums, attention, planes[:kept])
    cell.add(prog, body)
    if not (kept or full):
        loop.run(body, prog)
        return result, None
    sequence = layout.create(graph, type, rnn.maxTimeSteps, below(layer.debug, "sequence"))
    if rnn.variableTimeSteps():
        zero(graph, sequence, prog, below(layer.debug, "zero"))
    loop.put([(sequence, step)], body)
    loop.run(body, prog)
    steps = layout.shaped(sequence)
    output, intermediates = (
        steps.slice(kept, kept + 1, 1).squeeze([1]) if full else result,
        steps.slice(0, kept, 1) if kept else None,
    )
    settings = {**layer.settings, "attention": scores is not None, "varTimeSteps": rnn.variableTimeSteps()}
    note_results(graph, ForwardNote(layer.call, layer.debug, settings), output, intermediates)
    return output, intermediates


def _weighed(layer: GruLayer, input: Tensor, prog: Sequence) -> Tensor:
    """The products of the input of all steps with its weights, and the biases, as rows."""
    graph, debug = layer.graph, below(layer.debug, "weighInput")
    every, right = input.reshape([-1, input.dim(2)]), side_by_side(layer.matrices.of_input)
    product = matMul(graph, every, right, prog, debug, layer.options.forward, layer.cache)
    steps = product.reshape([input.dim(0), input.dim(1), GRU_UNITS, -1]).dimRoll(2, 1)
    return copied(graph, layer.layout(GRU_UNITS), steps, prog, debug)


class GruCell:
    """The cell of a step: two compute sets between products, or one behind a product with `resetAfter`."""

    def __init__(
        self, layer: GruLayer, loop: StepLoop, result: Tensor, sums: list[Tensor], attention: Tensor | None, kept: list[Tensor]
    ) -> None:
        self.layer, self.loop, self.result, self.sums, self.attention, self.kept = layer, loop, result, sums, attention, kept
        self.gate, self.other = (FUNCTIONS[kind] for kind in (layer.params.recurrentActivation, layer.params.activation))

    def add(self, prog: Sequence, body: Sequence) -> None:
        """Extend `prog` by what comes before the loop, `body` by the cell."""
        layer = self.layer
        biases = layer.matrices.biases
        spread = biases.dimRoll(1, 0).expand([2]).broadcast(layer.rnn.batchSize, 2)  # [1 or 2, units, batch, out]
        rows = [
            copied(layer.graph, layer.layout(GRU_UNITS), part.expand([0]), prog, below(layer.debug, "biases")) for part in spread
        ]
        own, *recurrent = (list(layer.layout(GRU_UNITS).shaped(part)[0]) for part in rows)
        if layer.params.resetAfter:
            self._reset_after(own, recurrent[0], body)
        else:
            self._reset_before(own, body)

    def _product(self, left: Tensor, units: Tensor, body: Sequence) -> list[Tensor]:
        layer = self.layer
        options, debug = layer.options.forward, below(layer.debug, "weigh")
        product = matMul(layer.graph, left, side_by_side(units), body, debug, options, layer.cache)
        return list(one_by_one(product, units.dim(0)))

    def _reset_before(self, biases: list[Tensor], body: Sequence) -> None:
        """Gates; the product of the output, reset, for the candidate; the rest."""
        layer, weights = self.layer, self.layer.matrices.of_output
        reset, update = self.kept[:2] if self.kept else (layer.matrix("reset"), layer.matrix("update"))
        left = layer.matrix("resetOutput")
        gates = self._product(self.result, weights.slice(0, 2), body)
        tensors = [reset, update, left, self.result, gates[0], self.sums[0], biases[0], gates[1], self.sums[1], biases[1]]
        p = [PlaceHolder(number + 1) for number in range(len(tensors))]
        r, u = self.gate(p[4] + p[5] + p[6]), self.gate(p[7] + p[8] + p[9])
        mapInPlace(layer.graph, [r, u, r * p[3]], tensors, body, below(layer.debug, "gates"))
        (product,) = self._product(left, weights.slice(2, 3), body)
        targets = [self.result, *self.kept[2:4]]
        inner = [*targets, update, product, self.sums[2], biases[2]]
        q = [PlaceHolder(number + 1) for number in range(len(inner))]
        kept_update, *parts = q[len(targets) :]
        candidate = self.other(parts[0] + parts[1] + parts[2])
        self._finish(inner, candidate, kept_update, [candidate, q[0]][: len(targets) - 1], body)

    def _reset_after(self, biases: list[Tensor], recurrent: list[Tensor], body: Sequence) -> None:
        """One product of the output, and one compute set."""
        products = self._product(self.result, self.layer.matrices.of_output, body)
        targets = [self.result, *self.kept]
        tensors = [*targets]
        for parts in zip(products, recurrent, self.sums, biases, strict=True):
            tensors += parts
        p = [PlaceHolder(number + 1) for number in range(len(tensors))]
        a = p[len(targets) :]
        r, u = (self.gate(a[4 * unit] + a[4 * unit + 1] + a[4 * unit + 2] + a[4 * unit + 3]) for unit in range(2))
        inner = a[8] + a[9]
        candidate = self.other(a[10] + a[11] + r * inner)
        self._finish(tensors, candidate, u, [r, u, candidate, p[0], inner][: len(self.kept)], body)

    def _finish(self, tensors: list[Tensor], candidate: Expr, update: Expr, kept: list[Expr], body: Sequence) -> None:
        """The output, in place of the first tensor, and what is kept, in place of the next."""
        before = PlaceHolder(1)
        tensors = list(tensors)
        if self.attention is not None:
            tensors.append(self.attention)
            update = update - update * PlaceHolder(len(tensors))
        output: Expr = candidate + update * (before - candidate)
        flag = self.loop.lasting(body)
        if flag is not None:
            tensors.append(flag)
            output = Select(output, 0.0 if self.layer.params.outputFullSequence else before, PlaceHolder(len(tensors)))
        mapInPlace(self.layer.graph, [output, *kept], tensors, body, below(self.layer.debug, "cell"))
