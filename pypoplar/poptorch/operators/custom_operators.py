"""Operators of a program's own, made of vertices: `registerCustomOp` makes one known, `custom_op` is it in a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch

from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError, TensorShapeError, UnknownHandle
from pypoplar.poptorch.operators.captured_forms import isRunningOnIpu
from pypoplar.poptorch.operators.tensor_arguments import blank, check_number, check_tensors, described
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public

Builder = Callable[..., Any]
_known: dict[str, CustomOperator] = {}


@public
class CustomOperator:
    """An operator of a program's own, made by `registerCustomOp`; its method `backward` gives it a gradient."""

    def __init__(self, key: str, forward: Builder, reference: Callable[..., Any] | None) -> None:
        self.key, self.forward, self.reference = key, forward, reference
        self.gradient: Builder | None = None

    def backward(self, function: Builder) -> Builder:
        """A decorator for the function that extends a program by the operator's gradient.

        Parameters
        ----------
        function:
            Called as ``function(graph, gradients, inputs, outputs, attributes, prog, name)``. It extends `prog` and gives a tensor
            for each input, its gradient; None for one that has none.

        Returns
        -------
        Callable
            The function, as it is.
        """
        self.gradient = function
        return function


def _key(name: str, domain: str, version: int) -> str:
    return f"{domain}.{name}:{version}"


@public
def registerCustomOp(
    name: str, domain: str = "custom.ops", domain_version: int = 1, reference: Callable[..., Any] | None = None
) -> Callable[[Builder], CustomOperator]:
    """A decorator that makes a function the operator that `custom_op` finds by its name.

    The function is called as ``function(graph, inputs, attributes, prog, name)``, with a `Graph`, tensors of the device and the
    attributes. It extends the Sequence `prog`, and gives a list of tensors.

    Parameters
    ----------
    name:
        The operator's name.
    domain:
        Its domain; operators of one name in several domains are several.
    domain_version:
        The domain's version, at least 1.
    reference:
        A function of tensors of PyTorch, and of the attributes as keywords, which is the operator on the CPU; None: there it is an
        error.

    Returns
    -------
    Callable
        Which makes a `CustomOperator` of a function.

    Raises
    ------
    PoplarTypeError
        For names that are no texts, and what is no function.

    Examples
    --------
    >>> import torch
    >>> from pypoplar import FLOAT, InOut, Input, Output, Vector, Vertex, poptorch, poputil
    >>> from pypoplar.program import Execute
    >>> class Cube(Vertex):
    ...     x: Input[Vector[FLOAT]]
    ...     y: Output[Vector[FLOAT]]
    ...     def compute(self):
    ...         for i in range(len(self.y)):
    ...             self.y[i] = self.x[i] * self.x[i] * self.x[i]
    >>> @poptorch.registerCustomOp("Cube", "custom.ops", 1, reference=lambda x: x**3)
    ... def cube(graph, inputs, attributes, prog, name):
    ...     (x,) = inputs
    ...     y = graph.clone(x)
    ...     cubes = graph.addComputeSet(name)
    ...     graph.setTileMapping(graph.addVertex(cubes, Cube, {"x": x.flatten(), "y": y.flatten()}), 0)
    ...     prog.add(Execute(cubes))
    ...     return [y]
    >>> class Model(torch.nn.Module):
    ...     def forward(self, x):
    ...         return poptorch.custom_op([x], "Cube", "custom.ops", 1, example_outputs=[x])[0]
    >>> poptorch.inferenceModel(Model())(torch.tensor([1.0, 2.0]))
    tensor([1., 8.])
    """
    for text in (name, domain):
        if type(text) is not str or not text:
            raise PoplarTypeError(f"poptorch.registerCustomOp takes names of an operator and of its domain, got {text!r}")
    check_number("registerCustomOp", "domain_version", domain_version, 1)

    def register(function: Builder) -> CustomOperator:
        if not callable(function):
            raise PoplarTypeError(f"poptorch.registerCustomOp takes a function, got {function!r}")
        operator = CustomOperator(_key(name, domain, domain_version), function, reference)
        _known[operator.key] = operator
        return operator

    return register


def registered_operator(name: str, domain: str, domain_version: int) -> CustomOperator | None:
    """The operator of a name; None if none was registered."""
    return _known.get(_key(name, domain, domain_version))


def registered_names(domain: str) -> list[str]:
    """The operators that were registered of a domain."""
    return [key.removeprefix(f"{domain}.").rpartition(":")[0] for key in _known if key.startswith(f"{domain}.")]


def custom_operator(key: str) -> CustomOperator:
    """The operator of a key; `UnknownHandle` if none was registered."""
    if key not in _known:
        raise UnknownHandle(
            f"poptorch.custom_op: no operator {key!r} is registered{nearest_or_all(key, _known)}; "
            "poptorch.registerCustomOp makes one known"
        )
    return _known[key]


SCHEMA = "(Tensor[] inputs, str key, str outputs, str attributes) -> Tensor[]"
BACKWARD = "(Tensor[] gradients, Tensor[] inputs, Tensor[] outputs, str key, str attributes) -> Tensor[]"


@torch.library.custom_op("poptorch::custom_operation", mutates_args=(), schema=SCHEMA)
def _custom_operation(inputs: list[torch.Tensor], key: str, outputs: str, attributes: str) -> list[torch.Tensor]:
    """Of shapes and types alone: on the CPU an operator is its reference, but where it is looked for why a module has no graph."""
    return [torch.zeros_like(one) for one in blank(outputs, None)]


@_custom_operation.register_fake
def _(inputs: list[torch.Tensor], key: str, outputs: str, attributes: str) -> list[torch.Tensor]:
    return blank(outputs, inputs[0].device if inputs else None)


@torch.library.custom_op("poptorch::custom_operation_backward", mutates_args=(), schema=BACKWARD)
def _custom_backward(
    gradients: list[torch.Tensor], inputs: list[torch.Tensor], outputs: list[torch.Tensor], key: str, attributes: str
) -> list[torch.Tensor]:
    raise AssertionError("on the CPU an operator is its reference")


@_custom_backward.register_fake
def _(
    gradients: list[torch.Tensor], inputs: list[torch.Tensor], outputs: list[torch.Tensor], key: str, attributes: str
) -> list[torch.Tensor]:
    return [torch.empty_like(one) for one in inputs]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    given, ctx.key, _, ctx.attributes = inputs
    ctx.count = len(given)
    ctx.save_for_backward(*given, *output)


def _backward(ctx: Any, gradients: list[torch.Tensor | None]) -> tuple[Any, ...]:
    if custom_operator(ctx.key).gradient is None:
        raise MissingFeature(f"poptorch.custom_op: the operator {ctx.key!r} has no gradient: give it one with its `backward`")
    given, outputs = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
    whole = [torch.zeros_like(output) if one is None else one for one, output in zip(gradients, outputs, strict=True)]
    results = torch.ops.poptorch.custom_operation_backward(whole, list(given), list(outputs), ctx.key, ctx.attributes)
    return [one if source.dtype.is_floating_point else None for one, source in zip(results, given, strict=True)], None, None, None


_custom_operation.register_autograd(_backward, setup_context=_keep)


def _check_attributes(attributes: object) -> dict[str, Any]:
    """The attributes: numbers and strings, or lists of one kind of them."""
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise PoplarTypeError(f"poptorch.custom_op takes a dict for attributes, got {attributes!r}")
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise PoplarTypeError(f"poptorch.custom_op: names of attributes are strings, got {name!r}")
        several = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, bool | int | float | str) for one in several) or len({type(one) for one in several}) > 1:
            raise PoplarTypeError(
                f"poptorch.custom_op: an attribute is a number, a string or a list of one kind of them; {name} is {value!r}"
            )
    return dict(attributes)


@public
def custom_op(
    inputs: list[torch.Tensor] | tuple[torch.Tensor, ...],
    name: str,
    domain: str,
    domain_version: int,
    example_outputs: list[torch.Tensor] | tuple[torch.Tensor, ...],
    attributes: dict[str, Any] | None = None,
) -> list[torch.Tensor]:
    """The results of an operator of the program's own, which `registerCustomOp` made known: see there for an example.

    Parameters
    ----------
    inputs:
        Its tensors.
    name:
        The operator's name.
    domain:
        Its domain.
    domain_version:
        The domain's version.
    example_outputs:
        Tensors with the shapes and types of the results; their elements do not matter.
    attributes:
        Numbers, strings and lists of one kind of them, which go to the operator's functions.

    Returns
    -------
    list[torch.Tensor]
        Like `example_outputs`.

    Raises
    ------
    UnknownHandle
        If there is no such operator.
    InvalidOption
        If `example_outputs` is empty.
    TensorShapeError
        On the CPU, if the reference gives others than `example_outputs`.
    MissingFeature
        On the CPU without a reference; where a loss depends on an operator without a gradient.
    PoplarTypeError
        For arguments of other types.
    """
    given = check_tensors("custom_op", "inputs", inputs)
    examples = check_tensors("custom_op", "example_outputs", example_outputs)
    if not examples:
        raise InvalidOption("poptorch.custom_op: an operator gives at least one tensor; example_outputs is empty")
    operator = custom_operator(_key(name, domain, domain_version))
    told = _check_attributes(attributes)
    if not isRunningOnIpu():
        return _on_cpu(operator, given, examples, told)
    return list(_custom_operation(given, operator.key, described(examples), json.dumps(told)))


def _on_cpu(
    operator: CustomOperator, inputs: list[torch.Tensor], examples: list[torch.Tensor], attributes: dict[str, Any]
) -> list[torch.Tensor]:
    if operator.reference is None:
        raise MissingFeature(
            f"poptorch.custom_op: the operator {operator.key!r} runs on the IPU alone; "
            "registerCustomOp takes its `reference` for the CPU"
        )
    results = operator.reference(*inputs, **attributes)
    listed = list(results) if isinstance(results, list | tuple) else [results]
    if described(listed) != described(examples):
        raise TensorShapeError(
            f"poptorch.custom_op: the reference of {operator.key!r} gives {described(listed)}, "
            f"example_outputs are {described(examples)}"
        )
    return listed
