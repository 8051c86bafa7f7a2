"""The codelets of an executable as engines take them. Those of a file are source until an engine is made."""

from __future__ import annotations

from collections.abc import Iterator

from pypoplar.codelet.cost.pricing import Pricing
from pypoplar.codelet.ir.typed import PricedCodelet, TypedCodelet
from pypoplar.errors import CodeletError, FileLoadError
from pypoplar.executable.executable import Executable


def translate_codelets(executable: Executable) -> None:
    """Translate what has not been translated yet; `FileLoadError` names a codelet that cannot be, and says why."""
    for number, codelet in enumerate(executable.codelets):
        try:
            _ = codelet.typed  # made on demand, and kept
        except CodeletError as problem:
            raise FileLoadError(f"codelets[{number}], {codelet.name}, cannot be translated: {problem}") from problem


def pricing_of(executable: Executable) -> Iterator[tuple[TypedCodelet, Pricing]]:
    """The codelets, in the order of their numbers, with what decides their prices."""
    for number, codelet in enumerate(executable.codelets):
        names = [field.name for field in codelet.fields]
        pairs = executable.in_place[executable.in_place[:, 0] == number, 1:].tolist()
        in_place = tuple((names[source], names[target]) for source, target in pairs)
        yield codelet.typed, Pricing(executable.target, executable.options.codelet_cost, in_place)


def priced_codelets(executable: Executable) -> Iterator[PricedCodelet]:
    """The codelets with the target's prices, in the order of their numbers."""
    return (pricing(codelet) for codelet, pricing in pricing_of(executable))
