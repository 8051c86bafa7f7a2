"""LLVM's metadata that says which accesses of a codelet cannot meet.

Two fields of a vertex that overlap are both only read, or an Input and an Output that are one tensor (the compiler refuses other
graphs). LLVM is told of all others: it keeps values in registers and runs loops on vectors without first comparing addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from llvmlite import ir

from pypoplar.codelet.ir.span_roots import span_roots, stored_fields
from pypoplar.codelet.ir.typed import PricedCodelet


@frozen(eq=False)
class AliasScopes:
    """By field: the scope that it is, and the scopes that it cannot meet. Without marks LLVM takes any accesses to meet."""

    roots: Mapping[str, frozenset[str]]
    marks: Mapping[str, tuple[Any, Any]]

    def mark(self, instruction: Any, span: str) -> None:
        """Mark a load or store of a span that is a piece of one field only."""
        roots = self.roots.get(span.partition("~")[0], frozenset())
        root = next(iter(roots), "")
        if len(roots) != 1 or root not in self.marks:
            return
        own, others = self.marks[root]
        instruction.set_metadata("alias.scope", own)
        if others is not None:
            instruction.set_metadata("noalias", others)


def alias_scopes(module: Any, codelet: PricedCodelet) -> AliasScopes:
    """The scopes of a codelet's fields and tables."""
    stored = stored_fields(codelet)
    domain = module.add_metadata([ir.MetaDataString(module, "pypoplar")])
    names = codelet.wholes
    scopes = {name: module.add_metadata([ir.MetaDataString(module, f"pypoplar.{name}"), domain]) for name in names}
    marks = {}
    for name in names:
        met = {name, *(field for pair in codelet.in_place if name in pair for field in pair)}
        others = [scopes[other] for other in names if other not in met and (other in stored or name in stored)]
        marks[name] = (module.add_metadata([scopes[name]]), module.add_metadata(others) if others else None)
    return AliasScopes(span_roots(codelet), marks)
