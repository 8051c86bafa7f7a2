"""What of a forward pass depends on the values of tensors: numbers, conditions and shapes, which a graph does not have.

An exported graph shows some of it. Where export itself fails, the module runs once more on the CPU, with the same arguments, and
each call that takes a value out of a tensor is noted: so all of them are told at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch import fx
from torch._subclasses import fake_tensor
from torch.func import functional_call
from torch.fx.experimental import symbolic_shapes
from torch.overrides import TorchFunctionMode

from pypoplar.poptorch.capture.origins import operation_name, origin_of
from pypoplar.poptorch.capture.problems import Problem, Whereabouts, at_node

NUMBER = "takes a number out of a tensor, which the graph does not know: keep it a tensor, as in x * y.sum()"
CONDITION = (
    "asks for the value of a tensor, which the graph does not know: take torch.where(condition, a, b), or poptorch.cond; for loops "
    "take poptorch.for_loop"
)
MASK = "has a shape that depends on values: take torch.where(mask, x, 0.0) or x * mask, which keep the shape"
TRUTH = "asks for the value of a mask without dimensions: take torch.where(mask, value, x)"
PLACES = "has a shape that depends on values: take torch.where(condition, a, b), or topk with a number of places"
VALUES = "has a shape that depends on values: compute it on the host, before the model"
COUNTS = "has a shape that depends on values: take torch.zeros(n).scatter_add(0, x, ones), or one_hot(x, n).sum(0)"
BINS = (
    "has a shape that depends on values. Bincount `minlength` must be specified and must be a constant. On the IPU MK2 platform "
    "the minimum length is also the maximum length"
)
REPEATS = "has a shape that depends on values: give a number of repeats, or rows to take by index_select"
COVARIANCE = "asks for values in PyTorch: take x - x.mean(1, keepdim=True), and of that x @ x.T / (n - 1)"
PAIRS = "has a shape that PyTorch finds by values: take i = torch.combinations(torch.arange(n)) outside of the model, and x[i]"
CLASSES = "has a shape that depends on values: OneHot num classes must be specified and must be constant. Give num_classes"
SLICE = "has a shape that depends on values: take index_select, or torch.where with a mask"
NUMPY = "leaves PyTorch, and the graph: take the function of torch, or poptorch.CPU in inference"
DATA = "is not seen by a graph: take x.detach() for reading, and change parameters outside of the forward pass"
BACKWARD = "is not for a forward pass: the training model computes gradients by itself"

UNKNOWN_CLASSES = -1  # of PyTorch's one_hot: as many as the values ask for

CALLS = {
    **dict.fromkeys(("item", "tolist", "__float__", "__int__", "__index__", "__complex__"), NUMBER),
    **dict.fromkeys(("__bool__", "__contains__", "equal", "allclose", "is_nonzero"), CONDITION),
    **dict.fromkeys(("nonzero", "argwhere", "where"), PLACES),
    **dict.fromkeys(("numpy", "__array__", "__array_wrap__"), NUMPY),
    **dict.fromkeys(("unique", "unique_consecutive", "_return_output", "unique_dim"), VALUES),
    "bincount": BINS,
    "histc": COUNTS,
    **dict.fromkeys(("cov", "corrcoef"), COVARIANCE),
    "combinations": PAIRS,
    "masked_select": MASK,
    "__getitem__": MASK,
    "repeat_interleave": REPEATS,
    "one_hot": CLASSES,
    "data": DATA,
    "backward": BACKWARD,
}
"""By the name of a function of PyTorch what is wrong with it, if the arguments make it depend on data."""

NAMES = {
    "__float__": "float(tensor)",
    "__int__": "int(tensor)",
    "__index__": "a tensor as an index",
    "__bool__": "if, while or bool",
    "__getitem__": "x[...] with a mask",
    "__setitem__": "x[...] = value",
    "__array__": "a NumPy function of a tensor",
    "data": "Tensor.data",
    "_return_output": "unique",
    "__contains__": "in",
    "where": "where(condition)",
    "__complex__": "complex(tensor)",
}
EXCEPTIONS = (
    *(fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException),
    symbolic_shapes.GuardOnDataDependentSymNode,
)
OPERATIONS = {
    "item": NUMBER,
    "_local_scalar_dense": NUMBER,
    "nonzero": PLACES,
    "where": PLACES,
    "masked_select": MASK,
    "index": MASK,
    **dict.fromkeys(("_unique2", "unique_dim", "unique_consecutive"), VALUES),
    "bincount": BINS,
    "repeat_interleave": REPEATS,
    "one_hot": CLASSES,
}
"""By the name of an operation."""


def told_better(failed: Exception) -> bool:
    """Whether export has failed because of what calls are looked through for: PyTorch's words say less than what is found there."""
    return isinstance(failed, EXCEPTIONS) or "fake tensor in the exported program constant's list" in str(failed)


def in_graph(graph: fx.Graph) -> list[Problem]:
    """The operations of an exported graph whose number or shape depends on data, those alone that no other one is the cause of."""
    problems = []
    for node in graph.nodes:
        first = not any(_depends(before.meta.get("val")) for before in node.all_input_nodes)
        if node.op == "call_function" and first and _depends(node.meta.get("val")):
            name = operation_name(node)
            problems.append(at_node(f"{_told(name)} {OPERATIONS.get(name, VALUES)}", origin_of(node)))
    return problems


def _depends(value: Any) -> bool:
    """Whether a value, or the shape of a tensor, is a symbol."""
    for one in pytree.tree_leaves(value):
        if isinstance(one, torch.SymInt | torch.SymFloat | torch.SymBool):
            return True
        if isinstance(one, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in one.shape):
            return True
    return False


def _told(name: str) -> str:
    return NAMES.get(name, f"{name}()" if name in CALLS else name)


@frozen(eq=False)
class NotedCalls:
    """What calls of a module on the CPU depend on data, what those with such names gave, and what the module raised."""

    problems: list[Problem]
    answers: list[tuple[str, Any]]
    raised: Exception | None = None


def in_calls(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], whereabouts: Whereabouts) -> NotedCalls:
    """What the module's calls of PyTorch ask of values, when it runs on the CPU."""
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    copies = {name: one.detach().clone().requires_grad_(one.requires_grad) for name, one in tensors.items()}
    given = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, dict(kwargs)))
    noting = _Noting(whereabouts, [*copies.values(), *pytree.tree_leaves(given)])
    try:
        with torch.random.fork_rng(devices=[]), noting:
            functional_call(module, copies, *given)
    except Exception as problem:
        return NotedCalls(noting.problems, noting.answers, problem)
    return NotedCalls(noting.problems, noting.answers)


class _Noting(TorchFunctionMode):
    """Notes calls that depend on the values of tensors, of those that are computed from others."""

    def __init__(self, whereabouts: Whereabouts, tensors: list[Any]) -> None:
        super().__init__()
        self.whereabouts, self.problems, self.answers = whereabouts, list[Problem](), list[tuple[str, Any]]()
        self.known = {id(one): one for one in tensors if isinstance(one, torch.Tensor)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name(func)
        what = _what(name, args, kwargs)
        computed = any(id(one) in self.known for one in pytree.tree_leaves((args, kwargs)))
        if computed and what is not None:
            self.problems.append(Problem(f"{_told(name)} {what}", self.whereabouts.now()))
        result = func(*args, **kwargs)
        if what is not None:
            self.answers.append((name, result))
        if computed:
            self.known.update((id(one), one) for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor))
        return result


class Answering(TorchFunctionMode):
    """Gives calls that depend on data what they gave before, tensors of their shapes in the place of tensors."""

    def __init__(self, answers: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.answers = deque(answers)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name(func)
        if _what(name, args, kwargs) is None:
            return func(*args, **kwargs)
        asked, answer = self.answers.popleft()
        if (asked, name) == ("tolist", "item"):  # which export makes of it, element by element
            self.answers.extendleft(("item", one) for one in reversed(pytree.tree_leaves(answer)))
            asked, answer = self.answers.popleft()
        assert asked == name, f"{name} is called in the place of {asked}"
        return pytree.tree_map(_blank, answer)


def _blank(leaf: Any) -> Any:
    return torch.zeros(leaf.shape, dtype=leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def _name(func: Any) -> str:
    """The name of a function of PyTorch, or of the attribute that it reads."""
    name = getattr(func, "__name__", "")
    return getattr(getattr(func, "__self__", None), "__name__", name) if name in ("__get__", "__set__") else name


def _what(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """What is wrong with a call, if its arguments make it depend on data."""
    if name == "where" and len(args) + len(kwargs) > 1:
        return None
    if name == "repeat_interleave" and not any(isinstance(one, torch.Tensor) for one in (*args[1:], kwargs.get("repeats"))):
        return None
    if name == "one_hot" and (args[1] if len(args) > 1 else kwargs.get("num_classes", UNKNOWN_CLASSES)) != UNKNOWN_CLASSES:
        return None
    if name in ("__getitem__", "__setitem__"):
        parts = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(isinstance(end, torch.Tensor) for one in parts if isinstance(one, slice) for end in (one.start, one.stop, one.step)):
            return SLICE
        if name == "__getitem__":
            return MASK if any(map(_is_mask, parts)) else None
        return TRUTH if any(_is_mask(one) and not one.dim() for one in parts) else None
    return CALLS.get(name)


def _is_mask(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8)
