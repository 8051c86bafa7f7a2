"""PageRank: a sparse graph whose links are compiled into the exchange.

A page's rank is what a reader who follows links, and now and then begins anew, sees of it. Its next value is a sum over
the pages that link to it, wherever they are, and who they are is known when the program is made. So a vertex is
simply connected to the pages that its tile needs: the exchange does the gathering, each page is sent once, and no
request is ever made. A few pages have a thousand links and most have hardly any, so rows are cut into pieces, which
are dealt out by their links; a second superstep adds up the pieces. NumPy's power iteration gives the same ranks.

    pypoplar tutorial gallery/pagerank --picture ranks.svg

What it costs: 11,776 pages with 93,540 links on 1472 tiles take about 2,900 cycles a round, 1.5 us. Pages come one by
one, 3 cycles each, at most 118 to a tile, in 354; the sums take 1,100 and the ranks 1,000, as long as the fullest
tile takes, while the mean tile has half of its work. Without cutting, one worker sums 1,338 links of the best page,
and the others wait: 24,300 cycles, and 3,600 to receive what it needs, ten times as long in all.

Exercises
1. Do not cut rows: `--piece 1000000`. Which superstep becomes longer, and what do the other tiles do meanwhile?
2. Send all pages to all tiles instead, as in `n_body`. How many cycles does the exchange take then?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_chart

from pypoplar import FLOAT, INT, UNSIGNED_SHORT, Engine, Graph, Input, MultiVertex, Output, Vector, concat, ipu
from pypoplar.program import Execute, Repeat, Sequence

DAMPING = 0.85
LINKS = 8  # of each page


class Gather(MultiVertex):
    """Sums over pieces of rows: piece i has the links from ends[i] to ends[i + 1]; `source` says where in `arriving`."""

    arriving: Input[Vector[FLOAT]]
    source: Vector[UNSIGNED_SHORT]
    ends: Vector[INT]
    sums: Output[Vector[FLOAT]]

    def compute(self, worker):
        for piece in range(worker, len(self.sums), ipu.worker_count()):
            total = 0.0
            for link in range(self.ends[piece], self.ends[piece + 1]):
                total += self.arriving[self.source[link]]
            self.sums[piece] = total


class Rank(MultiVertex):
    """The ranks of pages, from the sums of their pieces, and what each gives to every page that it links to."""

    sums: Input[Vector[FLOAT]]
    ends: Vector[INT]
    links: Vector[INT]
    base: FLOAT
    rank: Output[Vector[FLOAT]]
    gift: Output[Vector[FLOAT]]

    def compute(self, worker):
        for page in range(worker, len(self.rank), ipu.worker_count()):
            total = 0.0
            for piece in range(self.ends[page], self.ends[page + 1]):
                total += self.sums[piece]
            rank = self.base + DAMPING * total
            self.rank[page] = rank
            self.gift[page] = rank / float(self.links[page])


def web(pages, seed):
    """Links as two arrays, from and to: a new page links to what others link to, mostly, or to any older page."""
    random = np.random.default_rng(seed)
    target = np.zeros((pages, LINKS), np.int64)
    for page in range(pages):
        older = max(page, LINKS + 1)
        target[page] = random.integers(older, size=LINKS)
        if page > LINKS:
            copied = random.random(LINKS) < 0.6
            target[page, copied] = target.ravel()[random.integers(page * LINKS, size=copied.sum())]
    links = np.unique(np.stack([np.repeat(np.arange(pages), LINKS), target.ravel()]), axis=1)
    return links[0], links[1]


class Layout:
    """Which tile has which pieces and pages; the links are sorted by the page that they lead to."""

    def __init__(self, source, target, pages, tiles, most):
        order = np.argsort(target, kind="stable")
        self.source, degree = source[order], np.bincount(target, minlength=pages)
        count = np.maximum(-(-degree // most), 1)  # pieces of each page; one even if nobody links to it
        self.piecesOfPage = np.concatenate([[0], np.cumsum(count)])
        page = np.repeat(np.arange(pages), count)
        within = np.arange(len(page)) - self.piecesOfPage[page]
        size = np.clip(degree[page] - within * most, 0, most)
        self.ends = np.concatenate([[0], np.cumsum(size)])
        work = np.cumsum(size + 6) - 1  # a piece costs about as much as six links, beside its links
        self.tileOfPiece = work * tiles // (work[-1] + 1)
        self.tileOfPage = self.tileOfPiece[self.piecesOfPage[:-1]]


def mapped(graph, name, tiles):
    """A variable of FLOATs, each on its tile of a sorted list."""
    tensor = graph.addVariable(FLOAT, [len(tiles)], name)
    for tile in np.unique(tiles):
        graph.setTileMapping(tensor[span(tiles, tile)], int(tile))
    return tensor


def span(tiles, tile):
    """The part of a sorted list of tiles that is one tile's."""
    begin, end = np.searchsorted(tiles, [tile, tile + 1])
    return slice(int(begin), int(end))


def together(pages):
    """Sorted pages as intervals of those that follow each other."""
    cuts = np.flatnonzero(np.diff(pages) != 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(pages, cuts)]


def build(graph, layout, links, rounds):
    """The program; handles "rank" and "gift" of the host."""
    pages = len(links)
    rank, gift = (mapped(graph, name, layout.tileOfPage) for name in ("rank", "gift"))
    sums = mapped(graph, "sums", layout.tileOfPiece)
    gather, combine = graph.addComputeSet("gather"), graph.addComputeSet("rank")
    for tile in np.unique(layout.tileOfPiece).tolist():
        own = span(layout.tileOfPiece, tile)
        ends = layout.ends[own.start : own.stop + 1]
        needed, source = np.unique(layout.source[ends[0] : ends[-1]], return_inverse=True)
        arriving = concat(gift.slices(together(needed))) if len(needed) else gift[:0]
        fields = {"arriving": arriving, "source": source, "ends": ends - ends[0], "sums": sums[own]}
        graph.setTileMapping(graph.addVertex(gather, Gather, fields), tile)
    for tile in np.unique(layout.tileOfPage).tolist():
        own = span(layout.tileOfPage, tile)
        ends = layout.piecesOfPage[own.start : own.stop + 1]
        fields = {"sums": sums[int(ends[0]) : int(ends[-1])], "ends": ends - ends[0], "links": links[own]}
        fields |= {"base": (1 - DAMPING) / pages, "rank": rank[own], "gift": gift[own]}
        graph.setTileMapping(graph.addVertex(combine, Rank, fields), tile)
    graph.createHostWrite("gift", gift)
    graph.createHostRead("rank", rank)
    return Repeat(rounds, Sequence([Execute(gather), Execute(combine)]))


def reference(source, target, links, rounds):
    """NumPy's power iteration, in float64."""
    rank = np.full(len(links), 1 / len(links))
    for _ in range(rounds):
        rank = (1 - DAMPING) / len(links) + DAMPING * np.bincount(target, (rank / links)[source], len(links))
    return rank


def picture(path, rank, degree):
    """An SVG: ranks by their place in the order, and by the number of links to a page, all as powers of ten."""
    order = np.sort(rank)[::-1]
    place = np.unique(np.geomspace(1, len(order), 300).astype(int))
    some = np.unique(np.concatenate([np.argsort(rank)[-40:], np.arange(0, len(rank), max(1, len(rank) // 400))]))
    curve = ("by place in the order", np.log10(place), np.log10(order[place - 1]))
    dots = ("by links to the page", np.log10(np.maximum(degree[some], 1)), np.log10(rank[some]))
    write_chart(path, f"PageRank of {len(rank):,} pages", ("place or links, power of ten", "rank, power of ten"), [curve], [dots])


def main(pages=11776, rounds=50, tiles=1472, piece=24, path=None):
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Gather, Rank)
    source, target = web(pages, seed=1)
    links = np.bincount(source, minlength=pages)
    engine = Engine(graph, build(graph, Layout(source, target, pages, tiles, piece), links, rounds))
    engine.load(device)
    engine.writeTensor("gift", (1 / pages / links).astype(np.float32))
    engine.run()
    rank = engine.readTensor("rank").astype(np.float64)
    expected = reference(source, target, links, rounds)
    error = np.abs(rank / expected - 1).max()
    best = np.argsort(-rank, kind="stable")[:10].tolist()
    same = best == np.argsort(-expected, kind="stable")[:10].tolist()
    degree = np.bincount(target, minlength=pages)
    print(f"{pages:,} pages, {len(source):,} links, at most {degree.max():,} to a page, {rounds} rounds on {tiles:,} tiles")
    print(f"check against NumPy: ranks differ by {error:.1e} of themselves, the first ten are {'the same' if same else 'others'}")
    print(f"the first ten: {', '.join(map(str, best))}; their sum of all ranks {rank[best].sum() / rank.sum():.1%}")
    print_costs(engine, rounds, "round")
    if path:
        picture(path, rank, degree)
    return bool(error < 1e-5 and same)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PageRank of a graph that grew by copying links, on a simulated IPU.")
    parser.add_argument("pages", type=number(20), nargs="?", default=11776)
    parser.add_argument("rounds", type=number(), nargs="?", default=50)
    parser.add_argument("--tiles", type=number(), default=1472)
    parser.add_argument("--piece", type=number(), default=24, help="most links of a piece (24)")
    parser.add_argument("--picture", dest="path", help="write the ranks to this SVG file")
    sys.exit(not main(**vars(parser.parse_args())))
