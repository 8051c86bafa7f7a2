"""The links of a machine's IPUs, which of them messages take on their way, and which has the most to carry.

IPUs are wired as a ladder (D): 2 k and 2 k + 1 are a rung, and each rung's IPUs have links along two rails to the next rung's. The
rails of a torus are joined at their ends. A domain has a ladder of its own; from one domain to the next messages go by gateways:
each four IPUs have one, which has a link to the gateway of the IPUs at the same place in the next domain.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Float64s, Int64s
from pypoplar.presets import IPUS_OF_MACHINE
from pypoplar.target import Target

FARTHER = 1 << 12  # links to and between gateways are taken where no IPU-Links lead: as far as more of these than a domain has


class LinkKind(IntEnum):
    """What a link is."""

    IPU_LINK = 0
    TO_GATEWAY = 1  # between an IPU and the gateway of its machine
    GATEWAY_LINK = 2  # between the gateways of two domains


@frozen
class Wiring:
    """How the IPUs of a target are linked."""

    ipus: int
    domain: int = 64  # IPUs that IPU-Links join
    torus: bool = False  # whether the ends of a domain's rails are joined
    gateways: bool = True  # whether gateways lead from one domain to another

    @property
    def domains(self) -> int:
        """How many domains there are."""
        return -(-self.ipus // self.domain)

    @classmethod
    def of(cls, target: Target) -> Wiring:
        """That of a target's IPUs."""
        return cls(target.num_ipus, target.ipu_link_domain_size, target.ipu_link_topology == "torus", target.gateway_mode)

    def links(self) -> PodLinks:
        """Its links, with the shortest ways through them."""
        return _links_of(self)


@frozen(eq=False)
class PodLinks:
    """Links from one place to another, each direction a link of its own, and the first link of each way through them.

    Places are the IPUs, and behind them the gateways.
    """

    source: Int64s  # [links]: a place
    destination: Int64s  # [links]
    kind: Int64s  # [links]: a `LinkKind`
    first: Int64s  # [places, places]: the link that a message takes first; -1 from a place to itself
    ipus: int

    def loads(self, flows: Int64s) -> Int64s:
        """int64 [links]: the bytes that each carries of ``flows[source IPU, destination IPU]``; all go on by a link at a time."""
        at, to = np.nonzero(flows)
        bytes, loads = flows[at, to], np.zeros(len(self.source), np.int64)
        while (going := at != to).any():
            at, to, bytes = at[going], to[going], bytes[going]
            link = self.first[at, to]
            np.add.at(loads, link, bytes)
            at = self.destination[link]
        return loads

    def busy(self, flows: Int64s, bandwidths: Float64s) -> Float64s:
        """float64 [links]: the time that each takes for flows, given what each `LinkKind` carries in a unit of it, one way."""
        times: Float64s = self.loads(flows) / bandwidths[self.kind]
        return times

    def place_name(self, place: int) -> str:
        """What a place is called: ``IPU 3``, or ``gateway 1``."""
        return f"IPU {place}" if place < self.ipus else f"gateway {place - self.ipus}"


@lru_cache(maxsize=64)
def _links_of(wiring: Wiring) -> PodLinks:
    begins = range(0, wiring.ipus, wiring.domain)
    ladders = [_ladder(begin, min(wiring.domain, wiring.ipus - begin), wiring.torus) for begin in begins]
    parts = [(source, destination, LinkKind.IPU_LINK) for source, destination in ladders]
    places = wiring.ipus
    if wiring.domains > 1 and wiring.gateways:
        places += -(-wiring.ipus // IPUS_OF_MACHINE)
        parts += _gateways(wiring)
    source, destination = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
    kind = np.concatenate([np.full(len(part[0]), int(part[2])) for part in parts])
    return PodLinks(source, destination, kind, _first_links(places, source, destination, kind), wiring.ipus)


def _ladder(begin: int, ipus: int, torus: bool) -> tuple[Int64s, Int64s]:
    """The links of so many IPUs from one on, rails before rungs: a way goes along its rail first, where it can."""
    here = begin + np.arange(ipus)
    low, high, lower = here[: max(ipus - 2, 0)], here[2:], here[: ipus - ipus % 2 : 2]
    if torus and ipus > 4 and ipus % 2 == 0:  # two rungs are joined already
        low, high = np.concatenate((low, here[-2:])), np.concatenate((high, here[:2]))
    return np.concatenate((low, high, lower, lower + 1)), np.concatenate((high, low, lower + 1, lower))


def _gateways(wiring: Wiring) -> list[tuple[Int64s, Int64s, LinkKind]]:
    """The links to gateways and between those of neighbouring domains."""
    ipu = np.arange(wiring.ipus)
    of_ipu = wiring.ipus + ipu // IPUS_OF_MACHINE
    gateway, apart = np.unique(of_ipu), wiring.domain // IPUS_OF_MACHINE
    low, high = gateway[:-apart], gateway[apart:]
    return [
        (np.concatenate((ipu, of_ipu)), np.concatenate((of_ipu, ipu)), LinkKind.TO_GATEWAY),
        (np.concatenate((low, high)), np.concatenate((high, low)), LinkKind.GATEWAY_LINK),
    ]


def _first_links(places: int, source: Int64s, destination: Int64s, kind: Int64s) -> Int64s:
    """By source and destination the first link, in their order, of those that lead nearer."""
    length = np.where(kind == LinkKind.IPU_LINK, 1, FARTHER)
    far = _distances(places, source, destination, length)
    first = np.full((places, places), -1)
    for link in range(len(source))[::-1]:  # what is written last stays: the first link
        nearer = far[destination[link]] + length[link] == far[source[link]]
        nearer[source[link]] = False
        first[source[link], nearer] = link
    return first


def _distances(places: int, source: Int64s, destination: Int64s, length: Int64s) -> Int64s:
    """int64 [places, places]: the length of the shortest way between two."""
    far = np.full((places, places), FARTHER * places)
    np.fill_diagonal(far, 0)
    while True:
        nearer = far.copy()
        np.minimum.at(nearer, source, far[destination] + length[:, None])
        if np.array_equal(nearer, far):
            return far
        far = nearer
