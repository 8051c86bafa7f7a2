"""Capture of a module: exported with the shapes of a call's arguments, then traced forward and backward."""

from __future__ import annotations

import contextlib
import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from traceback import walk_tb
from typing import Any, NoReturn, TypeVar

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorDeviceMismatchError
from torch.export import ExportedProgram, _trace
from torch.export.graph_signature import ConstantArgument, InputSpec, OutputKind
from torch.export.graph_signature import InputKind as ExportedKind
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.traceback import preserve_node_meta

from pypoplar.errors import PoplarError
from pypoplar.poptorch.capture.assigned_buffers import assigned_buffers_changed
from pypoplar.poptorch.capture.carried_changes import carry_changes
from pypoplar.poptorch.capture.changed_inputs import changed_inputs, noticed_shapes
from pypoplar.poptorch.capture.composite_operations import decomposed
from pypoplar.poptorch.capture.data_dependence import EXCEPTIONS, Answering, in_calls, in_graph, told_better
from pypoplar.poptorch.capture.detached_changes import detached_changes
from pypoplar.poptorch.capture.double_precision import keep_numbers_finite
from pypoplar.poptorch.capture.gradient_modes import (
    changes_without_gradients,
    inference_modes_as_gradient_modes,
    mark_gradient_modes,
)
from pypoplar.poptorch.capture.joint_graph import GraphInput, InputKind, JointGraph
from pypoplar.poptorch.capture.joint_trace import trace_joint
from pypoplar.poptorch.capture.meta_tensors import has_values
from pypoplar.poptorch.capture.model_blocks import block_left, marked, unmarked
from pypoplar.poptorch.capture.origins import all_users_lines, is_users, operation_name, origin_of, raised_by_user
from pypoplar.poptorch.capture.own_dictionaries import know_dicts
from pypoplar.poptorch.capture.problems import CaptureError, Problem, Whereabouts, at_node, listed, refuse
from pypoplar.poptorch.capture.python_gradients import hooks_of_gradients, noticed_gradients
from pypoplar.poptorch.capture.shared_memory import apart, buffers_named_once, shared_memory
from pypoplar.poptorch.capture.side_effects import told_side_effects
from pypoplar.poptorch.capture.trace_marks import TraceMarks
from pypoplar.poptorch.capture.training_loss import loss_of
from pypoplar.poptorch.operators import checked_overlaps, forms_of_graphs, numbers_as_indices
from pypoplar.poptorch.options.execution_strategies import ExecutionStrategy
from pypoplar.poptorch.user_log import logger

_KINDS = {
    ExportedKind.PARAMETER: InputKind.PARAMETER,
    ExportedKind.BUFFER: InputKind.BUFFER,
    ExportedKind.CONSTANT_TENSOR: InputKind.CONSTANT,
    ExportedKind.USER_INPUT: InputKind.ARGUMENT,
}
WITHOUT_VALUES = (
    *EXCEPTIONS,
    FakeTensorDeviceMismatchError,
)  # what calls raise for values that tensors on "meta" do not have
HANDING_OUT = (torch.ops.aten.detach.default, operator.getitem)  # what has been computed elsewhere
Known = TypeVar("Known")
NOISY = ("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor", "torch.export", "torch._export")


def capture(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    strategy: ExecutionStrategy | None = None,
) -> JointGraph:
    """The joint graph of a module for arguments of these shapes; with gradients of its trained parameters where `training`.

    With a `strategy`, which places blocks, operations know their IPU.
    """
    captured: JointGraph | None = capture_unless(module, args, kwargs, training, strategy, lambda _: None)
    assert captured is not None
    return captured


def capture_unless(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    strategy: ExecutionStrategy | None,
    known: Callable[[ExportedProgram], Known | None],
) -> JointGraph | Known:
    """What `capture` gives, or what is `known` of the exported program: it is asked for one in which nothing is wrong so far."""
    args, kwargs = apart(module, args, kwargs)
    with _use_lazy_graph_module(True):  # graphs on the way become no Python
        try:
            with contextlib.nullcontext() if strategy is None else marked(strategy):
                exported = _exported(module, args, kwargs, training, known)
        except CaptureError as problem:
            problem.rest = _rest(module, args, kwargs) if problem.problems else None
            raise
        return _joint(module, exported, training) if isinstance(exported, ExportedProgram) else exported


def _rest(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JointGraph | None:
    """The forward pass of a module where calls that depend on data give what they do for these arguments: for what else is wrong.

    None where that is no graph either.
    """
    try:
        with _quiet(), preserve_node_meta(), forms_of_graphs(), all_users_lines():
            answers = in_calls(module, args, kwargs, Whereabouts(module)).answers
            with Answering(answers):
                exported = torch.export.export(module, args, dict(kwargs), strict=False)
            mark_gradient_modes(exported.graph_module)
            return _joint(module, decomposed(exported), training=False)
    except Exception:  # it is for a message alone
        return None


def _joint(module: torch.nn.Module, exported: ExportedProgram, training: bool) -> JointGraph:
    signature = exported.graph_signature
    output = next(node for node in reversed(exported.graph.nodes) if node.op == "output")
    returned = list(output.args[0])
    users = [number for number, spec in enumerate(signature.output_specs) if spec.kind is OutputKind.USER_OUTPUT]
    loss = users[loss_of([returned[number] for number in users], exported.graph)] if training else None

    specs = list(signature.input_specs)
    tensors = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    fakes, trained = _fakes(placeholders, specs, tensors)
    if training and not trained:
        logger.warning("no parameter of the model is trained: its forward pass uses none that has requires_grad=True")
    marks = TraceMarks()
    with _fake_mode(placeholders):
        try:
            graph, outputs, gradients = trace_joint(exported.graph_module, fakes, loss, trained, marks)
        except PoplarError:
            raise
        except Exception as failed:
            where = "" if marks.now[0] is None else f" ({marks.now[0]})"
            raise CaptureError(
                f"{type(module).__name__} cannot become a graph of static shapes: {_first_line(failed)}{where}"
            ) from failed

    updates, changed = (
        {str(spec.target): outputs[number] for number, spec in enumerate(signature.output_specs) if spec.kind is kind}
        for kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
    )
    _refuse_other_mutations(signature.output_specs)
    keep_numbers_finite(graph)
    traced = [node for node in graph.nodes if node.op == "placeholder"]
    tied = {id(fake): node for fake, node in zip(fakes, traced, strict=True) if isinstance(fake, torch.Tensor)}  # the last is used
    nodes = [tied.get(id(fake), node) for fake, node in zip(fakes, traced, strict=True)]
    return JointGraph(
        graph=graph,
        inputs=tuple(_input(spec, node, exported) for spec, node in zip(specs, nodes, strict=True)),
        outputs=tuple(outputs[number] for number in users),
        structure=exported.call_spec.out_spec,
        loss=None if loss is None else outputs[loss],
        gradients={name: node for name, node in gradients.items() if node is not None},
        buffers=updates,
        changed=changed,
    )


def _exported(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    known: Callable[[ExportedProgram], Known | None],
) -> ExportedProgram | Known:
    whereabouts = Whereabouts(module)
    problems = hooks_of_gradients(module) if training else []
    noticed = noticed_gradients(whereabouts, problems) if training else contextlib.nullcontext()
    reshaped: list[Problem] = []
    dicts = module.register_forward_hook(lambda _, __, returned: know_dicts(returned))
    with _quiet(), preserve_node_meta(), forms_of_graphs(), all_users_lines():
        try:
            with (
                buffers_named_once(),
                assigned_buffers_changed(module, training),
                noticed,
                noticed_shapes(module, whereabouts, reshaped),
                told_side_effects(whereabouts),
                inference_modes_as_gradient_modes(),
                checked_overlaps(module),
                numbers_as_indices(module),
            ):
                exported = torch.export.export(module, args, dict(kwargs), strict=False)
            refuse(module, reshaped)
            _refuse_constants_without_values(module, exported)
            mark_gradient_modes(exported.graph_module)
            found = None if problems else known(exported)
            if found is not None:
                return found
            problems += [*changed_inputs(exported), *_objects(exported)]
            problems += [*changes_without_gradients(exported), *detached_changes(exported)] if training else []
            carry_changes(exported.graph_module)
            exported = decomposed(exported)
        except PoplarError:
            raise
        except Exception as problem:
            refuse(module, [*reshaped, *problems] if reshaped else [], problem)
            _explain(module, args, kwargs, whereabouts, problems, problem)
        finally:
            dicts.remove()
    refuse(module, [*problems, *in_graph(exported.graph), *_outside_blocks(exported.graph)])
    return exported


def _objects(exported: ExportedProgram) -> list[Problem]:
    """Inputs that are no tensors, numbers or texts, which graphs do not have."""
    specs = [spec for spec in exported.graph_signature.input_specs if spec.kind not in _KINDS]
    what = "an object such as a torch.Generator is used, which a graph does not have; for random numbers leave generator out"
    return [Problem(what, str(spec.target or spec.arg.name)) for spec in specs]


def _outside_blocks(graph: fx.Graph) -> list[Problem]:
    """The first operation behind each block that ends before another one begins."""
    told: dict[str, Problem] = {}
    for node in graph.nodes:
        computes = node.op == "call_function" and node.target not in HANDING_OUT and node.all_input_nodes
        left = block_left(node.meta) if computes and isinstance(node.meta.get("val"), torch.Tensor) else None
        if left is not None:
            what = (
                f"No active Block, all the ops must belong to a Block: {operation_name(node)} comes behind the end of block{left}"
            )
            told.setdefault(left, at_node(f"{what}; let it be in that one, or begin another one before it", origin_of(node)))
    return list(told.values())


def _refuse_constants_without_values(module: torch.nn.Module, exported: ExportedProgram) -> None:
    """Refuse tensors on "meta" that are constants of the graph: PyTorch cannot go on with it, so nothing else is told."""
    what = 'is a tensor on "meta", and its values are needed: register_buffer it, or make it on the CPU'
    placeholders = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    problems = []
    for spec in exported.graph_signature.input_specs:
        value = exported.constants.get(str(spec.target)) if spec.kind is ExportedKind.CONSTANT_TENSOR else None
        if isinstance(value, torch.Tensor) and not has_values(value):
            users = [origin_of(user) for user in placeholders[spec.arg.name].users]
            problems.append(Problem(f"{spec.target} {what}", str(users[0]) if users else ""))
    if problems:
        raise CaptureError(f"{type(module).__name__} cannot be predicted as it is:\n{listed(problems)}")


def _explain(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    whereabouts: Whereabouts,
    problems: list[Problem],
    failed: Exception,
) -> NoReturn:
    """Tell why a module cannot be exported: what it raises itself, what of it depends on data, and PyTorch's words beside it."""
    with unmarked():
        calls = in_calls(module, args, kwargs, whereabouts)
    found = [*problems, *calls.problems]
    raised = None if isinstance(calls.raised, WITHOUT_VALUES) else calls.raised
    own = raised if raised is not None else failed if raised_by_user(failed) else None
    if own is not None and not isinstance(own, PoplarError):
        if found:
            own.add_note(
                f"Beside this error, {type(module).__name__} cannot run on the IPU as it is:\n{listed(dict.fromkeys(found))}"
            )
        raise own from None
    frames = [*walk_tb(failed.__traceback__)]
    where = whereabouts.of(reversed(frames))
    follows = not any(is_users(frame.f_code.co_filename) for frame, _ in frames)  # in the export, from what is found
    if found and not follows and not told_better(failed) and where not in [one.where for one in found]:
        found.insert(0, Problem(f"{type(failed).__name__}: {_first_line(failed)}", where))
    if own is not None and found:
        found.append(Problem(_first_line(own)))
    refuse(module, found, failed)
    if own is not None:
        raise own from None
    if isinstance(failed, AssertionError):  # of the export's own, which it has no better words for
        refuse(module, shared_memory(module, args, kwargs), failed)
    raise CaptureError(
        f"{type(module).__name__} cannot become a graph of static shapes: {_first_line(failed)} ({where})"
    ) from failed


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0] or type(problem).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch's export warns of what it does itself, and prints graphs that it cannot go on with."""
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        _trace.print = lambda *_, **__: None
        try:
            yield
        finally:
            del _trace.print
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _fakes(
    placeholders: list[fx.Node], specs: list[InputSpec], tensors: Mapping[str, torch.Tensor]
) -> tuple[list[Any], dict[str, torch.Tensor]]:
    """Inputs of shape and type alone, and those of them that are trained, by name; tied parameters are one."""
    fakes: list[Any] = []
    trained: dict[str, torch.Tensor] = {}
    shared: dict[int, Any] = {}
    used = {id(tensors.get(str(spec.target))) for node, spec in zip(placeholders, specs, strict=True) if node.users}
    for node, spec in zip(placeholders, specs, strict=True):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            fakes.append(value)
            continue
        known = tensors.get(str(spec.target))
        if known is not None and id(known) in shared:
            fakes.append(shared[id(known)])
            continue
        with value.fake_mode:
            fake = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        if spec.kind is ExportedKind.PARAMETER and known is not None and known.requires_grad and id(known) in used:
            trained[str(spec.target)] = fake.requires_grad_()
        if known is not None:
            shared[id(known)] = fake
        fakes.append(fake)
    return fakes, trained


def _fake_mode(placeholders: list[fx.Node]) -> contextlib.AbstractContextManager[Any]:
    for node in placeholders:
        if isinstance(node.meta.get("val"), torch.Tensor):
            return node.meta["val"].fake_mode
    return contextlib.nullcontext()


def _input(spec: InputSpec, node: fx.Node, exported: ExportedProgram) -> GraphInput:
    kind = _KINDS[spec.kind]
    if kind is InputKind.ARGUMENT:
        return GraphInput(kind, spec.arg.name, node, spec.arg.value if isinstance(spec.arg, ConstantArgument) else None)
    name = str(spec.target)
    return GraphInput(kind, name, node, exported.constants[name] if kind is InputKind.CONSTANT else None)


def _refuse_other_mutations(specs: list[Any]) -> None:
    kinds = OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION
    others = [spec for spec in specs if spec.kind not in kinds]
    if others:
        listed = ", ".join(f"{spec.target} ({spec.kind.name.lower().replace('_', ' ')})" for spec in others)
        raise CaptureError(f"a module's forward pass changes its buffers and arguments alone; this one changes {listed}")


def unflatten(structure: Any, outputs: list[Any]) -> Any:
    """What a module returns, from its flattened outputs."""
    return pytree.tree_unflatten(outputs, structure)
