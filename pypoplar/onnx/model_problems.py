"""What is wrong with a model, all of it in one error, each with its node as messages name it."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import PoplarError

MOST_TOLD = 20  # problems in one message


class ModelError(PoplarError, ValueError):
    """An ONNX model that cannot run on the IPU as it is: nodes that are wrong, depend on data, or have no type or operator here.

    The message names the model's file and the nodes.
    """


class MissingValue(ModelError):
    """Values of inputs that shapes depend on are not known yet: a call gives them, or `Model.compile`."""

    def __init__(self, message: str, names: Iterable[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


def refuse(problems: Iterable[str], head: str) -> None:
    """`ModelError` with all problems, if there are any."""
    once = list(dict.fromkeys(problems))
    if len(once) == 1:
        raise ModelError(once[0])
    if once:
        more = [f"- and {len(once) - MOST_TOLD} more"] if len(once) > MOST_TOLD else []
        raise ModelError("\n".join([head, *(f"- {problem}" for problem in once[:MOST_TOLD]), *more]))
