"""Names of instances of vertex templates."""

from __future__ import annotations

import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@public
def templateVertex(name: str, *arguments: ElementType | bool | int | str) -> str:
    """The name of an instance of a vertex template.

    ``templateVertex("popops::Fill", FLOAT, True)`` is ``"popops::Fill<float,true>"``.

    Parameters
    ----------
    name:
        The name of the template.
    *arguments:
        Its arguments; none give the name alone.

    Returns
    -------
    str
        The name that `Graph.addVertex` takes.

    Raises
    ------
    PoplarTypeError
        For arguments of another class.
    """
    if not isinstance(name, str):
        raise PoplarTypeError(
            f"poputil.templateVertex takes the name of a codelet, got {name!r}; write {getattr(name, '__name__', 'X')!r}"
        )
    return f"{name}<{','.join(map(_word, arguments))}>" if arguments else name


def _word(argument: object) -> str:
    if isinstance(argument, ElementType):
        return argument.spelling
    if not isinstance(argument, bool | int | str | np.integer):
        kinds = "an element type, a bool, a whole number or a word"
        raise PoplarTypeError(f"poputil.templateVertex: an argument is {kinds}, got {argument!r}")
    return str(argument).lower() if isinstance(argument, bool) else str(argument)
