"""Fields of a vertex that are demanded to be apart: of two that would lie in the same memory one gets a copy for itself."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int8s, Int64s
from pypoplar.arrays.interval_algebra import keys, meets, union
from pypoplar.compiler.exchange.compute_set_edges import EMPTY, GATHERED, LANDED, Edges
from pypoplar.compiler.exchange.gathers import fingerprints, wanted_strands
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.field_table import INPUT
from pypoplar.graph.frozen import FrozenGraph


def part_edges(graph: FrozenGraph, survey: Survey, edges: Edges, placement: Int8s) -> Int64s:
    """For each edge 0, or the number of the copies that it shares: one for each field, so that no two fields share any.

    Edges that are parted are gathered from now on. They are Inputs: what overlaps otherwise with a write is refused before. Where
    an Input arrives and an Output departs, each has a place; all else that is in two places has to be copied.
    """
    apart = np.zeros(len(edges.position), np.int64)
    if len(survey.fields.distinct) == 0:
        return apart
    codelet = graph.vertices.codelet[edges.vertex][edges.position]
    for number, parting, kept, written in _pairs(survey):
        open = (codelet == number) & (placement != EMPTY) & (apart == 0)
        own, rivals = (np.flatnonzero(open & (edges.field == field)) for field in (parting, kept))
        parted = own[_meeting(edges, placement, own, rivals, survey.span)]
        if not written:
            shared = own[_alike(edges, placement, own, rivals)]
            parted = np.concatenate((parted, shared))
        copied = parted[(placement[parted] != LANDED) | (not written)]
        placement[parted], apart[copied] = GATHERED, 1 + parting
    return apart


def _pairs(survey: Survey) -> list[tuple[int, int, int, bool]]:
    """Codelet, the Input that is copied, the field that is not, and whether that one is written.

    Such pairs come first: what they gather may share a buffer, which the pairs of two Inputs then see to.
    """
    pairs = []
    for number, first, second in survey.fields.distinct.tolist():
        read = survey.fields.access[survey.fields.first[number] + np.array([first, second])] == INPUT
        if read.any():
            pairs.append((number, second, first, not read[0]) if read[1] else (number, first, second, True))
    return sorted(pairs, key=lambda pair: not pair[3])


def _meeting(edges: Edges, placement: Int8s, own: Int64s, rivals: Int64s, span: int) -> Bools:
    """Which edges lie where a rival of their vertex lies: of those that are used in place or have landed, one stretch each."""

    def stretches(edge: Int64s) -> tuple[Int64s, Int64s]:
        strand = np.searchsorted(edges.strands.owner, edge)
        begin = keys(edges.position[edge] * 2 + (placement[edge] == LANDED), edges.strands.begin[strand], span)
        return begin, begin + edges.length[edge]

    whole = placement[own] != GATHERED
    meeting = np.zeros(len(own), bool)
    meeting[whole] = meets(*stretches(own[whole]), *union(*stretches(rivals[placement[rivals] != GATHERED])))
    return meeting


def _alike(edges: Edges, placement: Int8s, own: Int64s, rivals: Int64s) -> Bools:
    """Which gathered edges share a buffer with a rival of their vertex: those with the same fingerprint are taken to."""
    alike = np.zeros(len(own), bool)
    own_gathered, gathered = np.flatnonzero(placement[own] == GATHERED), rivals[placement[rivals] == GATHERED]
    if len(own_gathered) and len(gathered):
        sides = (own[own_gathered], gathered)
        prints = np.concatenate([fingerprints(edges, wanted_strands(edges, edge)) for edge in sides])
        rows = np.stack((edges.position[np.concatenate(sides)], prints.view(np.int64)), 1)
        _, number = np.unique(rows, axis=0, return_inverse=True)
        alike[own_gathered] = np.isin(number[: len(own_gathered)], number[len(own_gathered) :])
    return alike
