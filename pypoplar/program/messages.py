"""What a program has to say: tensors that it prints, and messages with which it stops."""

from __future__ import annotations

from typing import Any

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.operands import check_one_element, check_tensor
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.tracebacks import public


def check_message(message: Any, what: str) -> str:
    """The argument, which is a text."""
    if not isinstance(message, str):
        raise PoplarTypeError(f"{what} is a string, got {message!r}")
    return message


@public
class PrintTensor(Program):
    """Print a tensor's values where `Engine.setPrintStream` says: ``PrintTensor("title", tensor)`` or ``PrintTensor(tensor)``.

    Parameters
    ----------
    title:
        Printed before the values; or the tensor, with its name as the title.
    tensor:
        What is printed.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If there is no tensor, or the title is no string.
    """

    def __init__(self, title: str | Tensor, tensor: Tensor | None = None, name: str = "") -> None:
        super().__init__(name)
        if isinstance(title, Tensor):
            given: Tensor | None = title
            title = title.getDebugStr() if tensor is None else tensor  # PrintTensor(tensor, "title") is understood too
        else:
            given = tensor
        self.title = check_message(title, "the title of PrintTensor")
        self.tensor = check_tensor(given, "PrintTensor")

    def reads(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return self.title or self.tensor.getDebugStr()


@public
class Abort(Program):
    """Stop the run: `Engine.run` raises `ApplicationRuntimeError` with a message.

    Parameters
    ----------
    message:
        What the error says.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the message is no string.
    """

    def __init__(self, message: str = "", name: str = "") -> None:
        super().__init__(name)
        self.message = check_message(message, "the message of Abort")

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return self.message


@public
class AbortOnCondition(Program):
    """Stop the run as `Abort` does if a tensor is not zero.

    Parameters
    ----------
    predicate:
        An integer or BOOL of one element.
    message:
        What the error says.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the predicate is no such tensor, or the message no string.
    TensorShapeError
        If the predicate does not have one element.
    """

    def __init__(self, predicate: Tensor, message: str = "", name: str = "") -> None:
        super().__init__(name)
        self.predicate = check_one_element(predicate, "the predicate of AbortOnCondition", None)
        self.message = check_message(message, "the message of AbortOnCondition")

    def reads(self) -> tuple[Tensor, ...]:
        return (self.predicate,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return f"if {self.predicate.getDebugStr()}"


@public
class ErrorProgram(Program):
    """Stop the run: `Engine.run` raises `ApplicationRuntimeError` with a message and the values of a tensor.

    Parameters
    ----------
    message:
        What the error says before the values.
    tensor:
        What it shows.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the tensor is none, or the message no string.
    """

    def __init__(self, message: str, tensor: Tensor, name: str = "") -> None:
        super().__init__(name)
        self.message = check_message(message, "the message of ErrorProgram")
        self.tensor = check_tensor(tensor, "ErrorProgram")

    def reads(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return self.message
