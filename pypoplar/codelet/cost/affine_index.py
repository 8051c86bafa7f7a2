"""Indices as sums of registers times constants, plus a constant: what of an address the instruction and the loop take over."""

from __future__ import annotations

from attrs import frozen

from pypoplar.codelet.cost.instructions import Register

Terms = frozenset[tuple[Register, int]]


@frozen
class AffineIndex:
    """The sum of each register times its factor, and `constant`."""

    terms: Terms = frozenset()
    constant: int = 0

    @staticmethod
    def of(register: Register) -> AffineIndex:
        return AffineIndex(frozenset({(register, 1)}))

    def __add__(self, other: AffineIndex) -> AffineIndex:
        factors = dict(self.terms)
        for register, factor in other.terms:
            factors[register] = factors.get(register, 0) + factor
        terms = frozenset((register, factor) for register, factor in factors.items() if factor)
        return AffineIndex(terms, self.constant + other.constant)

    def __sub__(self, other: AffineIndex) -> AffineIndex:
        return self + other.times(-1)

    def times(self, factor: int) -> AffineIndex:
        if factor == 0:
            return AffineIndex()
        return AffineIndex(frozenset((register, old * factor) for register, old in self.terms), self.constant * factor)

    def factor(self, register: Register) -> int:
        return dict(self.terms).get(register, 0)

    def without(self, register: Register) -> Terms:
        return frozenset(term for term in self.terms if term[0] is not register)

    def in_order(self) -> list[tuple[Register, int]]:
        """The terms, in an order that is the same in every run."""
        return sorted(self.terms, key=lambda term: term[0].number)
