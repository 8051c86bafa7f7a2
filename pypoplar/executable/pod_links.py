"""The IPU-Links of a machine, which messages take them on their way, and which link has the most to carry.

IPUs are wired as a ladder (D): 2 k and 2 k + 1 are a rung, and each rung's IPUs have links along two rails to the next rung's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class PodLinks:
    """Links from one IPU to another, each direction a link of its own, and the first link of each way through them."""

    source: Int64s  # [links]: an IPU
    destination: Int64s  # [links]
    first: Int64s  # [IPUs, IPUs]: the link that a message takes first; -1 from an IPU to itself

    def loads(self, flows: Int64s) -> Int64s:
        """int64 [links]: the bytes that each carries of ``flows[source, destination]``; all flows go on by a link at a time."""
        at, to = np.nonzero(flows)
        bytes, loads = flows[at, to], np.zeros(len(self.source), np.int64)
        while (going := at != to).any():
            at, to, bytes = at[going], to[going], bytes[going]
            link = self.first[at, to]
            np.add.at(loads, link, bytes)
            at = self.destination[link]
        return loads

    def carried(self, flows: Int64s) -> Int64s:
        """The same by the ends of links: int64 [IPUs, IPUs], the bytes that the link from one to the other carries."""
        bytes = np.zeros_like(flows)
        bytes[self.source, self.destination] = self.loads(flows)
        return bytes


@lru_cache(maxsize=64)
def ladder_links(ipus: int) -> PodLinks:
    """The links of so many IPUs, two at least, in a ladder whose ends are not joined; ways are as short as they can be."""
    here = np.arange(ipus)
    up, lower = here[: max(ipus - 2, 0)], here[: ipus - ipus % 2 : 2]
    source = np.concatenate((up, up + 2, lower, lower + 1))  # rails before rungs: a way goes along its rail first, where it can
    destination = np.concatenate((up + 2, up, lower + 1, lower))
    return PodLinks(source, destination, _first_links(ipus, source, destination))


def _first_links(ipus: int, source: Int64s, destination: Int64s) -> Int64s:
    """By source and destination the first link, in their order, of those that lead nearer."""
    hops = _hops(ipus, source, destination)
    first = np.full((ipus, ipus), -1)
    for link in range(len(source))[::-1]:  # what is written last stays: the first link
        nearer = hops[destination[link]] < hops[source[link]]
        first[source[link], nearer] = link
    return first


def _hops(ipus: int, source: Int64s, destination: Int64s) -> Int64s:
    """int64 [IPUs, IPUs]: how many links are between two."""
    hops = np.full((ipus, ipus), ipus)
    np.fill_diagonal(hops, 0)
    while True:
        nearer = hops.copy()
        np.minimum.at(nearer, source, hops[destination] + 1)
        if np.array_equal(nearer, hops):
            return hops
        hops = nearer
