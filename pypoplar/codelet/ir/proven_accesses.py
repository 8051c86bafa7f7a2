"""Accesses without a check of their own: what `pypoplar.codelet.ir.loop_checks` puts into a loop's body for checked ones.

They are statements of the typed form that only an analysis makes: the frontend never does, and no executable holds one.
"""

from __future__ import annotations

from typing import Union

from attrs import frozen

from pypoplar.codelet.ir.typed import Local, Operand, Span, Statement

_LARGEST_FACTOR = 1 << 20  # keeps every sum of the checks within 64 bits
_LARGEST_CONSTANT = 1 << 40
_MOST_TERMS = 8


@frozen
class Linear:
    """``scale * variable + sum(factor * local) + constant``, exact; the locals are fixed while the loop runs."""

    scale: int = 0
    terms: tuple[tuple[Local, int], ...] = ()
    constant: int = 0

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        factors = dict(self.terms)
        for local, factor in other.terms:
            factors[local] = factors.get(local, 0) + sign * factor
        terms = tuple((local, factor) for local, factor in factors.items() if factor)
        return Linear(self.scale + sign * other.scale, terms, self.constant + sign * other.constant)

    def times(self, number: int) -> Linear:
        if number == 0:
            return Linear()
        return Linear(self.scale * number, tuple((local, factor * number) for local, factor in self.terms), self.constant * number)

    @property
    def is_small(self) -> bool:
        factors = [self.scale, *(factor for _, factor in self.terms)]
        within = all(abs(factor) <= _LARGEST_FACTOR for factor in factors) and abs(self.constant) <= _LARGEST_CONSTANT
        return within and len(self.terms) <= _MOST_TERMS


@frozen
class ProvenLoad:
    """``target = span[index]`` without a check."""

    target: Local
    span: Span
    index: Linear
    where: int


@frozen
class ProvenStore:
    """``span[index] = value`` without a check."""

    span: Span
    index: Linear
    value: Operand
    where: int


@frozen
class Rebind:
    """The span `target` becomes the span `source`."""

    target: Span
    source: Span


PlannedStatement = Union[Statement, ProvenLoad, ProvenStore, Rebind]
PlannedBlock = tuple[PlannedStatement, ...]


@frozen
class AccessLine:
    """The elements that a loop goes along: of a span, with indices that differ by constants."""

    span: str
    scale: int
    terms: tuple[tuple[Local, int], ...]

    @classmethod
    def of(cls, span: Span, index: Linear) -> AccessLine:
        return cls(span.name, index.scale, index.terms)
