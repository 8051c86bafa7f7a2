"""Which fields the spans of a codelet are pieces of, and which fields its code reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.codelet.ir.typed import Binding, Load, Member, PricedCodelet, Row, Scratch, Slice, Store, TypedCodelet, ViewAs
from pypoplar.codelet.ir.walk import walk


@kept
def span_roots(codelet: TypedCodelet) -> Mapping[str, frozenset[str]]:
    """The fields, tables and scratch arrays that each span may be a piece of."""
    roots = {whole: frozenset({whole}) for whole in codelet.wholes}
    bindings = [statement for statement in walk(codelet.body) if isinstance(statement, Binding)]
    changed = True
    while changed:
        changed = False
        for binding in bindings:
            source = _source(binding)
            before = roots.get(binding.target.name, frozenset())
            after = before | roots.get(source, frozenset())
            if after != before:
                roots[binding.target.name] = after
                changed = True
    return MappingProxyType(roots)


def _source(binding: Binding) -> str:
    """What a statement binds a span to, or to a part of."""
    match binding:
        case Row(rows=rows):
            return rows.name
        case Slice(span=span) | Member(span=span) | ViewAs(span=span):
            return span.name
        case Scratch(array=array):
            return array


@kept
def stored_fields(codelet: TypedCodelet) -> frozenset[str]:
    """Names of the fields that the code may write to, also through rows and slices."""
    roots = span_roots(codelet)
    stores = (statement for statement in walk(codelet.body) if isinstance(statement, Store))
    return frozenset(root for store in stores for root in roots[store.span.name])


def store_locations(codelet: TypedCodelet, field: str) -> list[int]:
    """Where the code may write to a field: numbers of its locations, in the order of the code."""
    roots = span_roots(codelet)
    stores = (statement for statement in walk(codelet.body) if isinstance(statement, Store))
    return [store.where for store in stores if field in roots[store.span.name]]


def changing_fields(codelet: PricedCodelet) -> frozenset[str]:
    """Names of the fields that may hold something else after a store: those that the code may write to, and what they are."""
    stored = stored_fields(codelet)
    return stored.union(source for source, target in codelet.in_place if target in stored)


@kept
def loaded_scalars(codelet: TypedCodelet) -> frozenset[str]:
    """Names of the scalar fields whose value the code reads."""
    loads = (statement for statement in walk(codelet.body) if isinstance(statement, Load))
    return frozenset(load.span.name for load in loads if not load.checked)
