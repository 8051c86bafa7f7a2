"""The backward pass of GRU layers, and the gradients of their weights."""

from __future__ import annotations

from typing import overload

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.matmul.matmul_operands import preArrangeMatMulInputRHS
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.popnn.recurrent.cell_functions import BACKWARD
from pypoplar.popnn.recurrent.forward_notes import check_notes, note_of, note_results
from pypoplar.popnn.recurrent.gru_layer import GruLayer
from pypoplar.popnn.recurrent.gru_params import GRU_UNITS, GruParams, GruWeights
from pypoplar.popnn.recurrent.recurrent_operands import copied, side_by_side
from pypoplar.popnn.recurrent.recurrent_options import Options
from pypoplar.popnn.recurrent.recurrent_products import bias_gradients, input_gradients, weight_products
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.element_functions import mul
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.elements.map_functions import mapInPlace
from pypoplar.popops.expr import Expr, PlaceHolder, Select
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@overload
def gruBwd(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor]: ...
@overload
def gruBwd(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    realTimeSteps: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor]: ...
@overloaded("popnn.gru.gruBwd")
def gruBwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients of the initial output, of the input, and of what goes into the units of each step; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `gruFwd`.
    fwdIntermediatesSeq:
        What `gruFwd` kept, with the option ``inferenceOnly`` false in both calls.
    weights:
        Weights and biases.
    fwdInputSeq:
        The input, as in `gruFwd`.
    fwdOutput:
        The output of `gruFwd`.
    gradLayerNext:
        The gradient of that, of its shape.
    realTimeSteps:
        As in `gruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None, Tensor]
        The gradients of the initial output [batch, layerSizes[1]] and of the input [steps, batch, layerSizes[0]], None unless
        ``params.calcInputGradients``; and [steps, 3, batch, layerSizes[1]], or 4 with ``params.resetAfter``, for `gruWU`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    call = "popnn.gru.gruBwd"
    layer = GruLayer.read(call, graph, params, prog, weights, realTimeSteps, debugContext, options_, planningCache)
    pass_ = GruBackward(layer, fwdOutputInit, fwdIntermediatesSeq, fwdInputSeq, fwdOutput)
    pass_.check(attention=False, varTimeSteps=layer.rnn.variableTimeSteps())
    gradient, of_input, slopes, _ = pass_.build(gradLayerNext, None, prog)
    return gradient, of_input, slopes


@overload
def auGruBwd(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    attentions: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]: ...
@overload
def auGruBwd(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    realTimeSteps: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    attentions: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]: ...
@overloaded("popnn.gru.auGruBwd")
def auGruBwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediatesSeq: Tensor,
    weights: GruWeights,
    fwdInputSeq: Tensor,
    fwdOutput: Tensor,
    gradLayerNext: Tensor,
    attentions: Tensor,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """`gruBwd` of `auGruFwd`, with the gradient of the attention scores; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `auGruFwd`.
    fwdIntermediatesSeq:
        What `auGruFwd` kept, with the option ``inferenceOnly`` false in both calls.
    weights:
        Weights and biases.
    fwdInputSeq:
        The input, as in `auGruFwd`.
    fwdOutput:
        The output of `auGruFwd`.
    gradLayerNext:
        The gradient of that, of its shape.
    attentions:
        The scores, as in `auGruFwd`.
    realTimeSteps:
        As in `auGruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None, Tensor, Tensor]
        As of `gruBwd`, and the gradient of the scores, [batch, steps].

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    call = "popnn.gru.auGruBwd"
    layer = GruLayer.read(call, graph, params, prog, weights, realTimeSteps, debugContext, options_, planningCache)
    pass_ = GruBackward(layer, fwdOutputInit, fwdIntermediatesSeq, fwdInputSeq, fwdOutput)
    pass_.check(attention=True, varTimeSteps=layer.rnn.variableTimeSteps())
    gradient, of_input, slopes, of_scores = pass_.build(gradLayerNext, attentions, prog)
    assert of_scores is not None
    return gradient, of_input, slopes, of_scores


@overload
def gruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights]: ...
@overload
def gruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    realTimeSteps: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights]: ...
@overloaded("popnn.gru.gruBwdWithWU")
def gruBwdWithWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights]:
    """The gradients of the initial output, of the input, and of the weights: `gruBwd` and `gruWU`; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `gruFwd`.
    fwdIntermediates:
        What `gruFwd` kept, with the option ``inferenceOnly`` false in both calls.
    weights:
        Weights and biases.
    input:
        The input, as in `gruFwd`.
    output:
        The output of `gruFwd`.
    outputGrad:
        The gradient of that, of its shape.
    realTimeSteps:
        As in `gruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None, GruWeights]
        Of the initial output [batch, layerSizes[1]], of the input [steps, batch, layerSizes[0]], None unless
        ``params.calcInputGradients``, and of weights and biases.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    call = "popnn.gru.gruBwdWithWU"
    layer = GruLayer.read(call, graph, params, prog, weights, realTimeSteps, debugContext, options_, planningCache)
    pass_ = GruBackward(layer, fwdOutputInit, fwdIntermediates, input, output)
    pass_.check(attention=False, varTimeSteps=layer.rnn.variableTimeSteps())
    gradient, of_input, slopes, _ = pass_.build(outputGrad, None, prog)
    return gradient, of_input, pass_.of_weights(slopes, prog)


@overload
def auGruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    attentions: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights, Tensor]: ...
@overload
def auGruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    realTimeSteps: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    attentions: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights, Tensor]: ...
@overloaded("popnn.gru.auGruBwdWithWU")
def auGruBwdWithWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    attentions: Tensor,
    realTimeSteps: Tensor | None = None,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor | None, GruWeights, Tensor]:
    """Gradients of initial output, input, weights and attention scores: `auGruBwd` and `auGruWU`; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `auGruFwd`.
    fwdIntermediates:
        What `auGruFwd` kept, with the option ``inferenceOnly`` false in both calls.
    weights:
        Weights and biases.
    input:
        The input, as in `auGruFwd`.
    output:
        The output of `auGruFwd`.
    outputGrad:
        The gradient of that, of its shape.
    attentions:
        The scores, as in `auGruFwd`.
    realTimeSteps:
        As in `auGruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor | None, GruWeights, Tensor]
        As of `gruBwdWithWU`, and the gradient of the scores, [batch, steps].

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    call = "popnn.gru.auGruBwdWithWU"
    layer = GruLayer.read(call, graph, params, prog, weights, realTimeSteps, debugContext, options_, planningCache)
    pass_ = GruBackward(layer, fwdOutputInit, fwdIntermediates, input, output)
    pass_.check(attention=True, varTimeSteps=layer.rnn.variableTimeSteps())
    gradient, of_input, slopes, of_scores = pass_.build(outputGrad, attentions, prog)
    assert of_scores is not None
    return gradient, of_input, pass_.of_weights(slopes, prog), of_scores


@public
def gruWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> GruWeights:
    """The gradients of weights and biases; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `gruFwd`.
    fwdIntermediates:
        What `gruFwd` kept.
    bwdIntermediates:
        The last result of `gruBwd`.
    weights:
        Weights and biases.
    input:
        The input, as in `gruFwd`.
    output:
        The output of `gruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    GruWeights
        Of the shapes of `weights`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    layer = GruLayer.read("popnn.gru.gruWU", graph, params, prog, weights, None, debugContext, options_, planningCache)
    return GruBackward(layer, fwdOutputInit, fwdIntermediates, input, output).checked_of_weights(bwdIntermediates, prog)


@public
def auGruWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: GruParams,
    prog: Sequence,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str | None = None,
    options_: Options = None,
    planningCache: PlanningCache | None = None,
) -> GruWeights:
    """The gradients of weights and biases of a layer with attention; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdOutputInit:
        The output before the first step, as in `auGruFwd`.
    fwdIntermediates:
        What `auGruFwd` kept.
    bwdIntermediates:
        The third result of `auGruBwd`.
    weights:
        Weights and biases.
    input:
        The input, as in `auGruFwd`.
    output:
        The output of `auGruFwd`.
    options_:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    GruWeights
        Of the shapes of `weights`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, and with the option ``inferenceOnly``, which is true by default.
    """
    layer = GruLayer.read("popnn.gru.auGruWU", graph, params, prog, weights, None, debugContext, options_, planningCache)
    return GruBackward(layer, fwdOutputInit, fwdIntermediates, input, output).checked_of_weights(bwdIntermediates, prog)


@frozen(eq=False)
class GruBackward:
    """A backward pass of a layer, with what its forward pass had and kept."""

    layer: GruLayer
    initial: Tensor
    kept: Tensor
    input: Tensor
    output: Tensor

    def check(self, **settings: object) -> None:
        """`PoplibsError` for what is not of a forward pass with these parameters, options and further settings."""
        layer = self.layer
        if layer.options.inference_only:
            raise PoplibsError(
                f"{layer.call}: with the option 'inferenceOnly', true by default, nothing is kept for a backward pass"
            )
        layer.check_state("fwdOutputInit", self.initial)
        shape = [layer.rnn.maxTimeSteps, layer.kept, layer.rnn.batchSize, layer.rnn.layerSizes[1]]
        layer.check("fwdIntermediates", self.kept, shape, "[steps, matrices, batch, out]")
        layer.check_input("input", self.input)
        layer.check("output", self.output, layer.output_shape, "what gruFwd gave")
        settings = {**layer.settings, **settings}
        check_notes(layer.call, layer.graph, settings, fwdIntermediates=self.kept, output=self.output)

    def build(
        self, outputGrad: Tensor, scores: Tensor | None, prog: Sequence
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        """Extend `prog` by the pass: gradients of initial output, input, what goes into the units, and attention scores."""
        layer, graph, rnn = self.layer, self.layer.graph, self.layer.rnn
        layer.check("outputGrad", outputGrad, layer.output_shape, "as output")
        score_rows = None if scores is None else layer.attention_rows(scores, "attentions", prog)
        full = layer.params.outputFullSequence
        units = GRU_UNITS + layer.params.resetAfter
        whole = concat(self.kept, self.output.expand([1]), 1) if full else self.kept
        taken = [layer.layout(layer.kept + full).rows(whole)]
        gradient = layer.matrix("outputGrad")
        if full:
            zero(graph, gradient, prog, below(layer.debug, "zero"))
            taken.append(copied(graph, layer.layout(1), outputGrad.expand([1]), prog, below(layer.debug, "outputGrads")))
        else:
            prog.add(Copy(outputGrad, gradient))
        if score_rows is not None:
            taken.append(score_rows)
        loop, body = StepLoop.of(graph, rnn, True, prog, layer.debug), Sequence()
        parts = loop.take(taken, body)
        layout = layer.layout(units + (scores is not None))
        step = layout.create(graph, rnn.dataType, 1, below(layer.debug, "step"))
        arriving = [gradient, *([layer.layout(1).shaped(parts[1])[0][0]] if full else [])]
        attention = None if scores is None else layer.attention_of(parts[-1])
        values = list(layer.layout(layer.kept + full).shaped(parts[0])[0])[: layer.kept]
        _GruSlopes(layer, list(layout.shaped(step)[0]), values, arriving, attention, loop.lasting(body)).add(prog, body)
        sequence = layout.create(graph, rnn.dataType, rnn.maxTimeSteps, below(layer.debug, "sequence"))
        if rnn.variableTimeSteps():
            zero(graph, sequence, prog, below(layer.debug, "zero"))
        loop.put([(sequence, step)], body)
        loop.run(body, prog)
        every = layout.shaped(sequence)
        slopes = every.slice(0, units, 1)
        note_results(graph, note_of(graph, self.kept), slopes)
        of_scores = None
        if scores is not None:
            last, add = every.slice(units, units + 1, 1).squeeze([1]), ReduceParams(Operation.ADD)
            of_scores = reduce(graph, last, [2], add, prog, below(layer.debug, "attentionsGrad")).transpose()
        return gradient, self._of_input(slopes, prog), slopes, of_scores

    def _of_input(self, slopes: Tensor, prog: Sequence) -> Tensor | None:
        layer = self.layer
        if not layer.params.calcInputGradients:
            return None
        debug, weights = below(layer.debug, "input"), layer.matrices.of_input
        return input_gradients(layer.graph, slopes.slice(0, GRU_UNITS, 1), weights, prog, layer.options, layer.cache, debug)

    def checked_of_weights(self, slopes: Tensor, prog: Sequence) -> GruWeights:
        """`of_weights`, of slopes that a call was given."""
        self.check()
        layer = self.layer
        shape = [layer.rnn.maxTimeSteps, GRU_UNITS + layer.params.resetAfter, layer.rnn.batchSize, layer.rnn.layerSizes[1]]
        layer.check("bwdIntermediates", slopes, shape, "[steps, units, batch, out]")
        check_notes(layer.call, layer.graph, {}, fwdIntermediates=self.kept, bwdIntermediates=slopes)
        return self.of_weights(slopes, prog)

    def of_weights(self, slopes: Tensor, prog: Sequence) -> GruWeights:
        """Extend `prog` by the gradients of weights and biases, each product over all steps and samples."""
        layer, debug = self.layer, below(self.layer.debug, "weights")
        reset, _, _, before = (self.kept.slice(number, number + 1, 1).squeeze([1]) for number in range(4))
        of_gates, of_candidate = slopes.slice(0, 2, 1), slopes.slice(2, 3, 1)

        def product(read: Tensor, units: Tensor) -> Tensor:
            return weight_products(layer.graph, [read], units, prog, layer.options, layer.cache, debug)[0]

        of_input = product(self.input, slopes.slice(0, GRU_UNITS, 1))
        sums = bias_gradients(layer.graph, slopes, prog, below(debug, "biases"))
        if layer.params.resetAfter:
            inner = slopes.slice(GRU_UNITS, GRU_UNITS + 1, 1)
            of_output = product(before, concat(of_gates, inner, 1))
            recurrent = concat(sums.slice(0, 2), sums.slice(GRU_UNITS, GRU_UNITS + 1))
            biases = concat(sums.slice(0, GRU_UNITS).expand([1]), recurrent.expand([1]), 1)
        else:
            left = mul(layer.graph, reset, before, prog, debug)
            of_output, biases = concat(product(before, of_gates), product(left, of_candidate)), sums
        ordered = (
            concat([tensor[int(unit)].expand([0]) for unit in layer.params.cellOrder]) for tensor in (of_input, of_output, biases)
        )
        return GruWeights(*ordered)


@frozen(eq=False)
class _GruSlopes:
    """A step of the loop: gradients of what goes into the units, as planes, and of the output before, in place of the one after."""

    layer: GruLayer
    planes: list[Tensor]  # reset gate, update gate, candidate, with resetAfter its product, with attention the scores'
    values: list[Tensor]
    arriving: list[Tensor]  # the gradient of the output from the step behind, and from the layer behind
    attention: Tensor | None
    flag: Tensor | None

    def add(self, prog: Sequence, body: Sequence) -> None:
        """Extend `prog` by what comes before the loop, `body` by the step."""
        layer, gate = self.layer, BACKWARD[self.layer.params.recurrentActivation]
        after = layer.params.resetAfter
        through = layer.matrix("through")
        targets = [through, *(self.planes if after else self.planes[1:])]
        tensors = [*targets, *self.values, *self.arriving]
        p = [PlaceHolder(number + 1) for number in range(len(tensors) + 2)]
        reset, update, candidate, before, *inner = p[len(targets) : len(targets) + len(self.values)]
        grad: Expr = sum(p[len(targets) + len(self.values) + 1 : len(tensors)], start=p[len(targets) + len(self.values)])
        weight: Expr = update
        scale = None
        if self.flag is not None:
            tensors.append(self.flag)
            grad = Select(grad, 0.0, p[len(tensors) - 1])
        if self.attention is not None:
            tensors.append(self.attention)
            scale = p[len(tensors) - 1]
            weight = update - update * scale
        of_update = grad * (before - candidate)
        of_candidate = BACKWARD[layer.params.activation](grad * (1.0 - weight), candidate)
        of_gate = gate(of_update, update)
        trees = [grad * weight]
        if after:
            trees.append(gate(of_candidate * inner[0], reset))
        trees += [of_gate if scale is None else of_gate - of_gate * scale, of_candidate]
        if after:
            trees.append(of_candidate * reset)
        if scale is not None:
            trees.append(0.0 - of_update * update)
        mapInPlace(layer.graph, trees, tensors, body, below(layer.debug, "cell"))
        if after:
            back = self._product([*self.planes[:2], self.planes[3]], layer.matrices.of_output, prog, body)
        else:
            self._reset(through, prog, body)
            back = self._product(self.planes[:2], layer.matrices.of_output.slice(0, 2), prog, body)
        a, b, c, d = (PlaceHolder(number) for number in range(1, 5))
        passed = b + c if self.flag is None else Select(b + c, a, d)
        gradients = [self.arriving[0], through, back, *([] if self.flag is None else [self.flag])]
        mapInPlace(layer.graph, passed, gradients, body, below(layer.debug, "passed"))

    def _reset(self, through: Tensor, prog: Sequence, body: Sequence) -> None:
        """The gradient of the reset gate, and what goes through it to the output before."""
        layer = self.layer
        product = self._product([self.planes[2]], layer.matrices.of_output.slice(2, 3), prog, body)
        passed, back, reset, before = (PlaceHolder(number) for number in range(2, 6))
        trees = [BACKWARD[layer.params.recurrentActivation](back * before, reset), passed + back * reset]
        tensors = [self.planes[0], through, product, self.values[0], self.values[3]]
        mapInPlace(layer.graph, trees, tensors, body, below(layer.debug, "reset"))

    def _product(self, units: list[Tensor], weights: Tensor, prog: Sequence, body: Sequence) -> Tensor:
        """The gradient of the output that units are products of."""
        layer = self.layer
        options, debug = {**layer.options.of_pass("TRAINING_BWD"), "inputRHSIsPreArranged": True}, below(layer.debug, "stepBack")
        left, right = concat(units, 1), side_by_side(weights).transpose()
        arranged = preArrangeMatMulInputRHS(layer.graph, left.shape(), right, prog, debug, options, layer.cache)
        return matMul(layer.graph, left, arranged, body, debug, options, layer.cache)
