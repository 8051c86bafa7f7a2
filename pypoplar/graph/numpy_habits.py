"""What users of NumPy try on a tensor, which has no values: each is refused with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from pypoplar.braces import ordered
from pypoplar.errors import PoplarAttributeError, PoplarTypeError
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public

VIEW = "a tensor is a view of device memory, without values here"
HANDLE, READER = "graph.createHostRead('name', tensor)", "engine.readTensor('name')"
READING = f"{HANDLE}, and {READER}"
READ = f"make a handle with {HANDLE} and read it with {READER}"
IN_A_CODELET = "compute it in a codelet, and Execute its compute set"
BOOLEAN = "compute a BOOL in a codelet, for If or RepeatWhileTrue"
OPERATORS = {  # Python's name: as it is written, and the function of popops or else the remedy
    "add": ("+", "add"),
    "sub": ("-", "sub"),
    "mul": ("*", "mul"),
    "truediv": ("/", "div"),
    "floordiv": ("//", IN_A_CODELET),
    "mod": ("%", IN_A_CODELET),
    "pow": ("**", IN_A_CODELET),
    "matmul": ("@", "say poplin.matMul(graph, a, b, prog), which extends a program"),
    "and": ("&", IN_A_CODELET),
    "or": ("|", IN_A_CODELET),
    "xor": ("^", IN_A_CODELET),
    "lshift": ("<<", IN_A_CODELET),
    "rshift": (">>", IN_A_CODELET),
}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNARY = {"neg": "-{}", "pos": "+{}", "invert": "~{}"}
UNARY |= {name: name + "({})" for name in ("abs", "int", "float", "round")} | {"index": "range({})"}
REFLECTED = {"less": "gt", "less_equal": "ge", "greater": "lt", "greater_equal": "le"}  # NumPy's functions for array < tensor
REFLECTED |= {"add": "radd", "subtract": "rsub", "multiply": "rmul", "divide": "rtruediv", "true_divide": "rtruediv"}
REFLECTED |= {"floor_divide": "rfloordiv", "remainder": "rmod", "power": "rpow", "matmul": "rmatmul", "left_shift": "rlshift"}
REFLECTED |= {"right_shift": "rrshift", "bitwise_and": "rand", "bitwise_or": "ror", "bitwise_xor": "rxor"}
INSTEAD = {
    "T": "transpose(), or dimShuffle([2, 1, 0]) of three dimensions",
    "size": "numElements()",
    "ndim": "rank()",
    "dtype": "elementType()",
    "itemsize": "elementType().size",
    "strides": "getContiguousRegions()",
    "flat": "flatten()",
    "ravel": "flatten()",
    "swapaxes": "dimShuffle([1, 0])",
    "moveaxis": "dimRoll(dimension, newIndex)",
    "repeat": "upsample(scale, dimension)",
    "astype": "a codelet that converts; reinterpret(type) reads the same bytes",
    "view": "reinterpret(type)",
    "copy": "graph.clone(tensor), and program.Copy(tensor, clone)",
    "fill": "graph.setInitialValue(tensor, value)",
    "dot": "poplin.matMul(graph, a, b, prog)",
    "item": READING,
    "tolist": READING,
    "numpy": READING,
}


class WithoutValues:
    """The base of `Tensor` that refuses what needs values, and the attributes of NumPy's arrays."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _described(self) -> str: ...

    def __bool__(self) -> bool:
        raise PoplarTypeError(
            f"{self._described()} is a view of device memory without a value here; ask t.valid() or t.numElements()"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise PoplarTypeError(f"{self._described()} is a view of device memory, not host data: {READ}")

    def __new__(cls, *values: Any) -> Self:
        """An error that says how tensors are made, unless pypoplar makes one itself."""
        if values:
            raise PoplarTypeError(
                "tensors are made by graphs: write graph.addVariable(FLOAT, [4], 'x'), or graph.addConstant(FLOAT, [4], values)"
            )
        return super().__new__(cls)

    @public
    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **_: Any) -> Any:
        name = function.__name__
        reflected = REFLECTED.get(name)
        if reflected and method == "__call__" and not isinstance(operands[0], WithoutValues):
            return getattr(self, f"__{reflected}__")(operands[0])
        raise PoplarTypeError(f"numpy.{name}({', '.join(map(_text, operands))}): {VIEW}; {IN_A_CODELET}")

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise PoplarTypeError(f"numpy.{function.__name__} of {self._described()}: {VIEW}; {READ}")

    if not TYPE_CHECKING:  # type checkers are to say so themselves

        def __setitem__(self, key: object, value: object) -> None:
            raise PoplarTypeError(
                f"{self._described()}[{_key_text(key)}] = {_text(value)}: {VIEW}; say graph.setInitialValue(view, values) before "
                "the Engine is built, engine.writeTensor(handle, values) from the host, or Copy(other, view) in a program"
            )

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [attribute for attribute in dir(type(self)) if not attribute.startswith("_")]
            hint = f"; write {INSTEAD[name]}" if name in INSTEAD else nearest(name, known)
            raise PoplarAttributeError(f"tensor {self._described()} has no {name!r}{hint}", name=name, obj=self)


def _refusing(symbol: str, remedy: str, *, reflected: bool = False) -> Callable[[Any, object], NoReturn]:
    """The method of an operator on two operands."""

    def refuse(self: Any, other: object, *_: object) -> NoReturn:
        left, right = (_text(other), _text(self)) if reflected else (_text(self), _text(other))
        array = "; a constant stands for an array, graph.addConstant" if isinstance(other, np.ndarray) else ""
        raise PoplarTypeError(f"{left} {symbol} {right}: {VIEW}; {remedy}{array}")

    return refuse


def _refusing_one(text: str) -> Callable[..., NoReturn]:
    """The method of an operator on one operand."""

    def refuse(self: Any, *_: object) -> NoReturn:
        raise PoplarTypeError(f"{text.format(_text(self))}: {VIEW}; {IN_A_CODELET}")

    return refuse


def refuse_number(tensor: WithoutValues, other: object) -> bool:
    """`PoplarTypeError` for ``tensor == 3.0``: two tensors are compared here, values only on the device. Else NotImplemented."""
    if isinstance(other, int | float | np.generic | np.ndarray):
        raise PoplarTypeError(f"{_text(tensor)} == {_text(other)}: {VIEW}; {BOOLEAN}")
    return NotImplemented  # type: ignore[no-any-return]  # as `__eq__` may


def _text(operand: object) -> str:
    """A tensor by its name, an array by its form, else what it is."""
    if isinstance(operand, WithoutValues):
        return operand._described()
    if isinstance(operand, np.ndarray):
        return f"an array of {operand.dtype} {list(operand.shape)}"
    return repr(operand)


def _key_text(key: object) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_key_text, key))
    if isinstance(key, slice):
        bounds = ("" if bound is None else str(bound) for bound in (key.start, key.stop))
        return ":".join(bounds)
    return "..." if key is Ellipsis else repr(key)


def listed(call: str, given: Any, more: Iterable[Any] = ()) -> list[Any]:
    """The numbers that a method of tensors takes as one list; `PoplarTypeError` for ``reshape(8, 8)`` and for a set."""
    if more or not isinstance(given, Iterable):
        raise PoplarTypeError(f"{call} takes one list; write {call}([{', '.join(map(repr, (given, *more)))}])")
    return list(ordered(given, f"the list of {call}"))


def _add_operators() -> None:
    for name, (symbol, remedy) in OPERATORS.items():
        said, in_place = (
            (f"say popops.{remedy}{suffix}(graph, a, b, prog), which extends a program" if remedy.isalpha() else remedy)
            for suffix in ("", "InPlace")
        )
        setattr(WithoutValues, f"__{name}__", _refusing(symbol, said))
        setattr(WithoutValues, f"__r{name}__", _refusing(symbol, said, reflected=True))
        setattr(WithoutValues, f"__i{name}__", _refusing(f"{symbol}=", in_place))
    for name, symbol in COMPARISONS.items():
        setattr(WithoutValues, f"__{name}__", _refusing(symbol, BOOLEAN))
    for name, text in UNARY.items():
        setattr(WithoutValues, f"__{name}__", _refusing_one(text))


_add_operators()
