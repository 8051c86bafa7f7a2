"""How a codelet rounds to HALF whatever the program has set: the class keyword ``rounding="nearest"``."""

from __future__ import annotations

from pypoplar.codelet.language.declaration import declared_of, refused_keyword, user_classes
from pypoplar.codelet.language.fields import NEAREST, UNSAID, Vertex
from pypoplar.errors import CodeletError

_KEYWORD = "rounding"


def always_nearest(cls: type[Vertex]) -> bool:
    """Whether the class, or a base of it, rounds to the nearest HALF also while stochastic rounding is on."""
    said = [_says_nearest(base) for base in user_classes(cls)]  # each is judged
    return any(said)


def _says_nearest(base: type) -> bool:
    if _KEYWORD in vars(base) and isinstance(vars(base)[_KEYWORD], str):
        written = f"class {base.__name__}(Vertex, {_KEYWORD}={vars(base)[_KEYWORD]!r})"
        raise _refused(base, f"{_KEYWORD} is a keyword of the class, not an attribute: write {written}")
    given = declared_of(base).rounding
    if given is UNSAID:
        return False
    if given != NEAREST:
        raise _refused(base, f'{_KEYWORD}="{NEAREST}" rounds to the nearest HALF whatever the program sets; got {given!r}')
    return True


def _refused(base: type, message: str) -> CodeletError:
    return refused_keyword(base, base, _KEYWORD, message)
