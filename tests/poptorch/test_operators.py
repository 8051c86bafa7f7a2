"""PopTorch's own operators: on the IPU what they are on the CPU."""

import copy

import pytest
import torch

from pypoplar import FLOAT, Input, Output, Vector, Vertex, poptorch
from pypoplar.errors import (
    InvalidOption,
    MissingFeature,
    PoplarIndexError,
    PoplarTypeError,
    TensorShapeError,
    UnknownHandle,
)
from pypoplar.program import Execute
from tests.helpers.poptorch_rig import check


def drawn(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(drawn(3, 3))

    def forward(self, *arguments):
        return self.function(self, *arguments)


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_operators_that_give_what_they_get_have_gradients(dtype):
    check(lambda x: poptorch.nop(x.relu()), drawn(4, 5, dtype=dtype))
    check(lambda x: poptorch.nop(x), drawn(dtype=dtype))


def test_prints_stand_on_standard_error_with_their_gradient(capfd):
    check(lambda x: poptorch.ipu_print_tensor(x.relu(), "after"), torch.tensor([1.0, -2.0, 3.0]))
    text = capfd.readouterr().err
    assert "after: [1.0000000 0.0000000 3.0000000]" in text
    assert "after_gradient: [" in text


def test_prints_have_the_layout_that_is_asked_for(capfd):
    def function(x):
        y = poptorch.ipu_print_tensor(x, "a", False, 4, 1, 0, 2, "fixed", " ", "[", "]")
        return poptorch.ipu_print_tensor(y, "b", False, digits=1, float_format="scientific")

    check(function, torch.arange(6.0).reshape(2, 3))
    text = capfd.readouterr().err
    assert "a: [[0.00 ... 2.00]\n [3.00 ... 5.00]]" in text
    assert "b: ((0.0e+00, 1.0e+00, 2.0e+00)," in text
    assert "gradient" not in text


def test_what_no_print_can_be_is_refused():
    with pytest.raises(PoplarTypeError, match=r"poptorch\.ipu_print_tensor takes a torch\.Tensor for tensor, got 'title'"):
        poptorch.ipu_print_tensor("title")
    with pytest.raises(InvalidOption, match=r"no float_format is called 'fix'; did you mean 'fixed'"):
        poptorch.ipu_print_tensor(torch.ones(1), float_format="fix")
    with pytest.raises(InvalidOption, match="digits is at least 0"):
        poptorch.ipu_print_tensor(torch.ones(1), digits=-1)
    with pytest.raises(PoplarTypeError, match="nop takes"):
        poptorch.nop(1)


def test_a_loop_is_one_repeat_whose_rounds_hand_on_their_results():
    model = Model(lambda self, x, y: poptorch.for_loop(50, lambda a, b: [b, (a @ self.weight).relu() + b], [x, y]))
    x, y = drawn(2, 3), drawn(2, 3, seed=1)
    inference = poptorch.inferenceModel(model)
    got = inference(x, y)
    for one, wanted in zip(got, model(x, y), strict=True):
        torch.testing.assert_close(one, wanted.detach(), rtol=1e-5, atol=1e-5)
    rounds = [step for step in inference.getReport().execution.steps if step.executions == 50]
    assert {step.name.rpartition("forward/")[2].partition("/")[0] for step in rounds} >= {"matmul", "relu", "end_for_loop"}


def test_loops_nest_and_take_integers():
    def function(self, x, n):
        def inner(a, b):
            return [a + 1, b + a]

        def outer(a, b):
            a, b = poptorch.for_loop(3, inner, [a, b])
            return [a, b + b]

        y, total = poptorch.for_loop(2, outer, [n, n])
        return [y, total, x.relu()]

    model, x, n = Model(function), drawn(2), torch.tensor([1, 2])
    for one, wanted in zip(poptorch.inferenceModel(model)(x, n), model(x, n), strict=True):
        assert torch.equal(one, wanted)


def test_a_loop_of_constants_and_of_no_rounds():
    def function(self, x):
        (counted,) = poptorch.for_loop(4, lambda a: [a + 1], [torch.zeros(2)])
        return x + counted + poptorch.for_loop(0, lambda a: [a * 2], [x])[0]

    model, x = Model(function), drawn(2)
    assert torch.equal(poptorch.inferenceModel(model)(x), model(x))


def test_a_loop_draws_other_numbers_in_each_round():
    def function(self, x):
        def body(total, drops):
            return [total + torch.nn.functional.dropout(torch.ones(64), 0.5), drops]

        total, _ = poptorch.for_loop(4, body, [x, x])
        return total.detach(), poptorch.identity_loss(self.weight.sum(), "none")

    model = Model(function)
    training = poptorch.trainingModel(model, poptorch.Options().randomSeed(3))
    total, _ = training(torch.zeros(64))
    assert len(torch.unique(total)) > 2


def test_loops_have_no_gradient_and_keep_shapes():
    model = Model(lambda self, x: poptorch.identity_loss(poptorch.for_loop(2, lambda a: [a @ self.weight], [x])[0], "sum"))
    with pytest.raises(MissingFeature, match=r"poptorch\.for_loop\(\) is only supported in inference.*no gradient"):
        poptorch.trainingModel(model)(drawn(2, 3))
    for count in (2, 3):
        with pytest.raises(TensorShapeError, match=r"what the body returns has shapes .* got"):
            poptorch.for_loop(count, lambda a: [torch.cat([a, a])], [drawn(2)])
    with pytest.raises(PoplarTypeError, match="a list of tensors for inputs"):
        poptorch.for_loop(2, lambda a: a, drawn(2))
    with pytest.raises(ValueError, match="Object is not list"):  # as PopTorch's
        poptorch.for_loop(2, lambda a: a, drawn(2))
    with pytest.raises(ValueError, match=r"inputs\[1\], got 5 \(Object contained in list at index 1 is not torch\.tensor"):
        poptorch.for_loop(2, lambda a, b: (a, b), [drawn(2), 5])
    with pytest.raises(InvalidOption, match="count is at least 0"):
        poptorch.for_loop(-1, lambda a: a, [drawn(2)])


def test_what_a_loop_computes_stays_in_it():
    def function(self, x):
        kept = []

        def body(a):
            kept.append(a.relu())
            return [a + 1]

        return poptorch.for_loop(2, body, [x])[0] + kept[0]

    with pytest.raises(MissingFeature, match="used outside"):
        poptorch.inferenceModel(Model(function))(drawn(3))


def grows(y):
    y += 1
    return y


def grows_by_the_other(y, z):
    y += 1
    z += y.sum()
    return y, z


def changes_and_swaps(y, z):
    y[0] = z[1]
    return z, y


def changes_a_view(y):
    y[1:].t().mul_(2)
    return y


def gives_one_twice(y, z):
    y += 1
    z *= 2
    return y, y


def changes_and_gives_the_other(y, z):
    y.copy_(y * 2 + z)
    return z, z


def forgets(y):
    y.zero_()
    return y + 3


def writes_where_told(y):
    torch.add(y, 1, out=y)
    y[y > 2] = 0.5
    return y


BODIES = [
    *((grows, 1), (grows_by_the_other, 2), (changes_and_swaps, 2), (changes_a_view, 1), (gives_one_twice, 2)),
    *((changes_and_gives_the_other, 2), (forgets, 1), (writes_where_told, 1), (lambda y, z: [y, y + z], 2)),
]


@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize(("body", "count"), BODIES)
def test_what_a_body_changes_of_its_arguments_holds_for_the_next_round(body, count, inner):
    def nest(*values):
        return poptorch.for_loop(inner, body, list(values))

    x = drawn(3, 3).abs()
    model = Model(lambda self, x: poptorch.for_loop(3, body if inner == 1 else nest, [x] * count))
    before = x.clone()
    wanted = [x.clone() for _ in range(count)]
    for _ in range(3 * inner):
        results = body(*wanted)
        wanted = [one.clone() for one in (results if isinstance(results, list | tuple) else [results])]
    for got in (model(x), poptorch.inferenceModel(model)(x)):
        for one, value in zip(got, wanted, strict=True):
            torch.testing.assert_close(one, value)
    assert torch.equal(x, before)


class Counting(torch.nn.Module):
    """Loops and choices whose bodies change what is outside of them."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.norm = torch.nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, *arguments):
        return self.function(self, *arguments)


def normalizes(self, x):
    return poptorch.for_loop(3, lambda y: self.norm(y) * 2, [x])


def normalizes_by_all_batches(self, x):
    self.norm.momentum = None
    return poptorch.for_loop(3, lambda y: self.norm(y) * 2, [x])


def adds_up(self, x):
    total = torch.zeros(4, 3)
    row = total[0]

    def body(y):
        total.add_(y)
        row.mul_(2)
        return y + total

    return [*poptorch.for_loop(3, body, [x]), total, row]


def adds_up_without_arguments(self, x):
    total = x * 2

    def body():
        total.mul_(2)
        return []

    poptorch.for_loop(3, body, [])
    return [total]


def adds_up_in_both_loops(self, x):
    total = torch.zeros(3)

    def inner(y):
        total.add_(y[0])
        self.calls.add_(1)
        y += 1
        return y

    def outer(y):
        total.mul_(2)
        (y,) = poptorch.for_loop(2, inner, [y])
        self.calls += 10
        return y * 2

    self.calls += 3
    return [*poptorch.for_loop(3, outer, [x]), total, self.calls * 2]


def chooses(self, x):
    total, y = torch.zeros(3), x * 1

    def then(z):
        total.add_(1)
        z += total
        return [z]

    def otherwise(z):
        self.calls.add_(1)
        return [z + total]

    first = poptorch.cond(x.sum() > 0, then, [y], otherwise, [y])
    second = poptorch.cond(x.sum() < 0, then, [y], otherwise, [y])
    return [*first, *second, total, y, self.calls + 1]


def chooses_in_each_round(self, x):
    total = torch.zeros(3)

    def body(y):
        def then():
            total.add_(1)
            return [y * 2]

        def otherwise():
            self.calls.add_(1)
            return [y - 100]

        return poptorch.cond(y.sum() < 60, then, [], otherwise, [])

    return [*poptorch.for_loop(5, body, [x]), total, self.calls * 2]


OUTSIDE = (
    *(normalizes, normalizes_by_all_batches, adds_up, adds_up_without_arguments, adds_up_in_both_loops),
    *(chooses, chooses_in_each_round),
)


@pytest.mark.parametrize("function", OUTSIDE)
def test_what_a_body_changes_of_other_tensors_holds_for_the_next_round(function):
    model, x = Counting(function), torch.arange(12.0).reshape(4, 3)
    reference = copy.deepcopy(model)
    inference = poptorch.inferenceModel(model)
    for _ in range(2):
        for one, wanted in zip(inference(x), reference(x), strict=True):
            torch.testing.assert_close(one, wanted.detach(), rtol=1e-4, atol=1e-5)
        for name, buffer in reference.named_buffers():
            torch.testing.assert_close(model.get_buffer(name), buffer, rtol=1e-4, atol=1e-5)


def test_a_loop_of_two_ipus_hands_on_its_results():
    def function(self, x):
        def body(y):
            with poptorch.Block("first", ipu_id=0):
                y = y.relu() @ self.weight
            with poptorch.Block("second", ipu_id=1):
                return [y + 1]

        (y,) = poptorch.for_loop(3, body, [x @ self.weight])
        with poptorch.Block("third", ipu_id=1):
            return y @ self.weight

    model, x = Model(function), drawn(2, 3)
    options = poptorch.Options()
    options.setExecutionStrategy(poptorch.ShardedExecution(poptorch.AutoStage.SameAsIpu))
    torch.testing.assert_close(poptorch.inferenceModel(model, options)(x), model(x).detach())


def test_a_loop_whose_results_are_not_used_hands_out_nothing_else():
    def function(self, x):
        kept = []
        poptorch.for_loop(2, lambda a: kept.append(a + 1) or [a], [x])
        return kept[0]

    with pytest.raises(MissingFeature, match=r"what its body computes is used outside: return it.*test_operators\.py"):
        poptorch.inferenceModel(Model(function))(drawn(3))


@pytest.mark.parametrize("flag", [True, False])
def test_a_choice_runs_one_of_its_bodies(flag):
    def function(self, x, flag):
        hidden = x.relu()
        results = poptorch.cond(flag, lambda a: [a @ self.weight, hidden * 2], [x], lambda a, b: [a + b, hidden], [x, x])
        return [*results, hidden + 1]

    model, x = Model(function), drawn(3, 3)
    for one, wanted in zip(poptorch.inferenceModel(model)(x, torch.tensor(flag)), model(x, torch.tensor(flag)), strict=True):
        torch.testing.assert_close(one, wanted.detach())


def test_choices_whose_bodies_differ_are_refused():
    model = Model(lambda self, x, flag: poptorch.cond(flag, lambda: [x], [], lambda: [x, x], []))
    with pytest.raises(TensorShapeError, match="else_body returns has shapes"):
        poptorch.inferenceModel(model)(drawn(3), torch.tensor(True))
    with pytest.raises(TensorShapeError, match="one element"):
        poptorch.cond(torch.ones(2), list, [], list, [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_slices_begin_where_a_tensor_says(dtype):
    x, start = drawn(3, 7, dtype=dtype), torch.tensor(2)
    check(lambda x, start: poptorch.dynamic_slice(x, 1, start, 4, 1), x, arguments=(start,))
    check(lambda x, start: poptorch.dynamic_slice(x.relu(), -1, start, 5, 2), x, arguments=(start,))
    check(
        lambda x, y, start: poptorch.dynamic_update(x, y, 0, start, 1),
        x,
        drawn(1, 7, dtype=dtype, seed=1),
        arguments=(start[None],),
    )


def test_slices_that_cannot_be_are_refused():
    x, start = drawn(3, 4), torch.tensor(1)
    with pytest.raises(TensorShapeError, match="no slice of 5"):
        poptorch.dynamic_slice(x, 1, start, 5, 1)
    with pytest.raises(PoplarIndexError, match="begins at 0 to 1"):
        poptorch.dynamic_slice(x, 1, torch.tensor(2), 3, 1)
    with pytest.raises(PoplarTypeError, match="one integer"):
        poptorch.dynamic_slice(x, 1, torch.tensor(2.0), 3, 1)
    with pytest.raises(TensorShapeError, match=r"src has shape \[3, 2\]"):
        poptorch.dynamic_update(x, x, 1, start, 2)
    with pytest.raises(TensorShapeError, match=r"input and src tensors must have same dimensionality\. \(2\) vs \(1\)"):
        poptorch.dynamic_update(x, x[0], 0, start, 1)


def test_functions_of_the_host_run_in_the_middle_of_a_model():
    seen = []

    def double(x, n):
        seen.append(x.clone())
        return x * 2 + n, n + 1

    on_cpu = poptorch.CPU(double, "double")

    def function(self, x, n):
        y, m = on_cpu(x.relu(), n)
        y, m = on_cpu(y, m)
        return y.neg(), m

    model, x, n = Model(function), drawn(2, 3), torch.tensor([[1], [2]])
    wanted = model(x, n)
    inference = poptorch.inferenceModel(model)
    for one, other in zip(inference(x, n), wanted, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(seen[-2], x.relu())
    for one, other in zip(inference(x + 1, n), model(x + 1, n), strict=True):
        assert torch.equal(one, other)


class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.host = poptorch.CPU(self.scaled, "scaled")

    def scaled(self, x):
        return x * self.factor

    def forward(self, x):
        return self.host(x)


def test_a_copy_of_a_module_calls_its_own_functions(tmp_path):
    model, x = Scaled(2), torch.ones(3)
    copied = copy.deepcopy(model)
    copied.factor = 5
    first, second = poptorch.inferenceModel(model), poptorch.inferenceModel(copied)
    assert (first(x).tolist(), second(x).tolist()) == ([2] * 3, [5] * 3)
    second.save(tmp_path / "model")
    loaded = poptorch.load(tmp_path / "model", run_code_of_file=True)
    loaded.model.factor = 7
    assert (first(x).tolist(), second(x).tolist(), loaded(x).tolist()) == ([2] * 3, [5] * 3, [7] * 3)


def test_functions_of_the_host_are_for_inference():
    on_cpu = poptorch.CPU(torch.nn.Linear(3, 3), "layer")
    model = Model(lambda self, x: poptorch.identity_loss(on_cpu(x @ self.weight), "sum"))
    with pytest.raises(MissingFeature, match="CPU has no gradient"):
        poptorch.trainingModel(model)(drawn(2, 3))
    with pytest.raises(PoplarTypeError, match="a function or a layer"):
        poptorch.CPU(3, "three")


class TwiceAsMuch(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i] * self.factor


def scaled(graph, x, factor, prog, name):
    y = graph.clone(x)
    scaling = graph.addComputeSet(name)
    vertex = graph.addVertex(scaling, TwiceAsMuch, {"x": x.flatten(), "y": y.flatten(), "factor": factor})
    graph.setTileMapping(vertex, 0)
    prog.add(Execute(scaling))
    return y


@pytest.fixture
def scale():
    @poptorch.registerCustomOp("Scale", "test.ops", 2, reference=lambda x, factor: x * factor)
    def operator(graph, inputs, attributes, prog, name):
        return [scaled(graph, inputs[0], attributes["factor"], prog, name)]

    return operator


def apply_scale(x, factor=2.0):
    return poptorch.custom_op([x], "Scale", "test.ops", 2, example_outputs=[x], attributes={"factor": factor})[0]


def test_operators_of_a_program_are_made_of_its_vertices(scale):
    @scale.backward
    def gradient(graph, gradients, inputs, outputs, attributes, prog, name):
        assert inputs[0].shape() == outputs[0].shape() == [3, 2]
        return [scaled(graph, gradients[0], attributes["factor"], prog, name)]

    check(lambda x: apply_scale(apply_scale(x.relu()), 3.0), drawn(3, 2))


def test_operators_of_a_program_say_what_is_wrong_with_them(scale):
    with pytest.raises(UnknownHandle, match=r"no operator 'test\.ops\.Scal:2' is registered; did you mean 'test\.ops\.Scale:2'"):
        poptorch.custom_op([drawn(2)], "Scal", "test.ops", 2, [drawn(2)])
    with pytest.raises(PoplarTypeError, match="an attribute is a number"):
        poptorch.custom_op([drawn(2)], "Scale", "test.ops", 2, [drawn(2)], {"factor": [1, "a"]})
    with pytest.raises(TensorShapeError, match="example_outputs are"):
        poptorch.custom_op([drawn(2)], "Scale", "test.ops", 2, [drawn(3)], {"factor": 1.0})
    model = Model(lambda self, x: poptorch.custom_op([x], "Scale", "test.ops", 2, [x[:, :1]], {"factor": 1.0})[0])
    with pytest.raises(TensorShapeError, match="result 0 is FLOAT"):
        poptorch.inferenceModel(model)(drawn(2, 3))
    training = Model(lambda self, x: poptorch.identity_loss(apply_scale(x @ self.weight), "sum"))
    with pytest.raises(MissingFeature, match="has no gradient: give it one"):
        poptorch.trainingModel(training)(drawn(2, 3))


MODES = poptorch.MatMulSerializationMode


@pytest.mark.parametrize("mode", [MODES.InputChannels, MODES.ReducingDim, MODES.OutputChannels, MODES.Disabled])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_products_in_parts_are_the_product(mode, dtype):
    x, y = drawn(4, 6, dtype=dtype), drawn(6, 8, dtype=dtype, seed=1)
    got = poptorch.serializedMatMul(x, y, mode, 2, keep_precision=True)
    torch.testing.assert_close(got, x @ y, rtol=1e-2 if dtype is torch.float16 else 1e-5, atol=1e-5)
    with pytest.raises(InvalidOption if mode is not MODES.Disabled else TypeError, match=r"factor divides|missing"):
        poptorch.serializedMatMul(x, y, mode, 5) if mode is not MODES.Disabled else poptorch.serializedMatMul(x)


def test_the_likeliest_labels_are_found():
    probs = torch.log_softmax(drawn(6, 2, 4), -1)
    lengths = torch.tensor([6, 4])
    check(lambda p, n: tuple(poptorch.ctc_beam_search_decoder(p, n, 0, 8, 3)), probs, lengths, gradients=False)
    with pytest.raises(InvalidOption, match="top_paths is at most beam_width"):
        poptorch.ctc_beam_search_decoder(probs, lengths, beam_width=2, top_paths=3)


def test_hints_change_no_numbers(caplog):
    def function(self, x):
        x, _ = poptorch.set_overlap_for_input([x, x], poptorch.OverlapMode.OverlapAccumulationLoop)
        with poptorch.NameScope("outer"), poptorch.NameScope("inner"):
            y = poptorch.recomputationCheckpoint(x @ self.weight)
        return poptorch.set_available_memory(y, 0.3)

    model, x = Model(function), drawn(2, 3)
    inference = poptorch.inferenceModel(model)
    torch.testing.assert_close(inference(x), model(x).detach())
    names = {step.name for step in inference.getReport().execution.steps}
    assert any(name.startswith("outer/inner/forward/matmul") for name in names), names
    assert {"set_overlap_for_input"} == {
        record.getMessage().partition(" ")[0].rpartition(".")[2] for record in caplog.records if record.name == "poptorch"
    }
    with pytest.raises(InvalidOption, match="from 0 to 1"):
        poptorch.set_available_memory(x, 1.5)


@pytest.mark.parametrize("side", ["input", "output"])
def test_hints_about_copies_are_of_arguments_and_results(side):
    hint = getattr(poptorch, f"set_overlap_for_{side}")

    def function(self, x):
        y = hint(x * 2, poptorch.OverlapMode.OverlapAccumulationLoop)
        return y + 1

    told = rf"poptorch.set_overlap_for_{side} applied on a node which is not a tensor {side} to the model"
    with pytest.raises(poptorch.Error, match=told):
        poptorch.inferenceModel(Model(function))(drawn(2, 3))
    Model(function)(drawn(2, 3))  # on the CPU it means nothing

    def right(self, x):
        mode = poptorch.OverlapMode.OverlapAccumulationLoop
        x = poptorch.set_overlap_for_input({"x": x}, mode)["x"]
        return poptorch.set_overlap_for_output((x * 2, x + 1), mode)

    x = drawn(2, 3)
    torch.testing.assert_close(poptorch.inferenceModel(Model(right))(x), (x * 2, x + 1))


def test_operators_that_are_missing_say_so():
    for missing in (poptorch.fps, poptorch.nearest):
        with pytest.raises(MissingFeature, match="torch_cluster"):
            missing(torch.ones(2))
