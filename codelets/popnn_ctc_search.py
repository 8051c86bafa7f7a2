"""Device code of popnn: the search for the likeliest labels of connectionist temporal classification.

A sample has some beams, the likeliest labels of the steps so far, best first. Each is a node of a tree: `nodeParent` and
`nodeSymbol` say what a node's label is without its last symbol, and that symbol; node 0 is the empty label. A beam has the
probability that its label's last step was a blank (`blanks`), or not (`symbols`), and of both (`totals`). All are logarithms.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_INT, InOut, Input, Output, Vector, VectorList, Vertex, ipu
from pypoplar.popnn.ctc.logarithms import NEVER, log_add, log_mul

T = TypeVar("T", FLOAT, HALF)  # of the probabilities
P = TypeVar("P", FLOAT, HALF)  # of those of beams

NOTHING = 0xFFFFFFFF  # in the place of a symbol: the label stays as it is
MIXED = 0x9E3779B1  # an odd number of many bits


class CTCRank(Vertex, Generic[T], name="popnn::CTCRank", writes_all="ranked"):
    """For each of some steps the likeliest classes but the blank, best first, of equal ones the lowest first."""

    logProbs: Input[Vector[T]]
    ranked: Output[Vector[UNSIGNED_INT]]
    numClasses: UNSIGNED_INT
    blankClass: UNSIGNED_INT
    count: UNSIGNED_INT

    def compute(self):
        classes, count = int(self.numClasses), int(self.count)
        for step in range(len(self.logProbs) // classes):
            self.rank(self.logProbs[step * classes : (step + 1) * classes], self.ranked[step * count : (step + 1) * count])

    def rank(self, row, ranked):
        known = 0
        for symbol in range(len(row)):
            if UNSIGNED_INT(symbol) != self.blankClass:
                place = known
                while place > 0 and row[symbol] > row[ranked[place - 1]]:
                    if place < len(ranked):
                        ranked[place] = ranked[place - 1]
                    place -= 1
                if place < len(ranked):
                    ranked[place] = UNSIGNED_INT(symbol)
                    known = min(known + 1, len(ranked))


class CTCSearchStart(
    Vertex, Generic[P], name="popnn::CTCSearchStart", writes_all=("blanks", "symbols", "totals", "beams", "alive", "count")
):
    """Before the first step there is one beam, the empty label."""

    blanks: Output[Vector[P]]
    symbols: Output[Vector[P]]
    totals: Output[Vector[P]]
    beams: Output[VectorList[UNSIGNED_INT]]
    alive: Output[UNSIGNED_INT]
    count: Output[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]
    maxTime: UNSIGNED_INT

    def compute(self):
        ipu.check(self.dataLength <= self.maxTime, "a data length is beyond the time steps")
        self.alive = 1
        self.count = 0
        for beam in range(len(self.totals)):
            self.blanks[beam] = NEVER
            self.symbols[beam] = NEVER
            self.totals[beam] = NEVER
        self.blanks[0] = 0.0
        self.totals[0] = 0.0
        for field in self.beams:
            for beam in range(len(field)):
                field[beam] = 0


class CTCCandidates(Vertex, Generic[T, P], name="popnn::CTCCandidates"):
    """The best labels that come of the beams from `first` on by a step: they stay as they are, or get a symbol more.

    A beam has three heads, its best candidates: as it is, with its last symbol once more, and with the best of the others. A
    label that stays as it is and one that gets the symbol that makes it the same are one candidate, of the former beam.
    """

    logProbs: Input[Vector[T]]
    ranked: Input[Vector[UNSIGNED_INT]]
    blanks: Input[Vector[P]]
    symbols: Input[Vector[P]]
    totals: Input[Vector[P]]
    beams: Input[VectorList[UNSIGNED_INT]]  # last symbol, length, node, hash of the label, and of all but its last symbol
    nodeParent: Input[Vector[UNSIGNED_INT]]
    nodeSymbol: Input[Vector[UNSIGNED_INT]]
    alive: Input[UNSIGNED_INT]
    count: Input[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]
    numClasses: UNSIGNED_INT
    blankClass: UNSIGNED_INT
    first: UNSIGNED_INT
    heads: Output[VectorList[FLOAT]]  # [5][own beams]: the scores of the three heads, the best of them, and what `stays` says
    ranks: Output[Vector[UNSIGNED_INT]]  # [own beams]: places of the last heads in `ranked`
    children: Output[VectorList[UNSIGNED_INT]]  # [2][beams]: symbols that make a label another beam's, by own beam
    candidateBlanks: Output[Vector[FLOAT]]
    candidateSymbols: Output[Vector[FLOAT]]
    candidateTotals: Output[Vector[FLOAT]]
    parents: Output[Vector[UNSIGNED_INT]]
    added: Output[Vector[UNSIGNED_INT]]
    found: Output[UNSIGNED_INT]

    def compute(self):
        if self.count < self.dataLength:
            classes = int(self.numClasses)
            count = len(self.ranked) // (len(self.logProbs) // classes)
            step = int(self.count)
            row = self.logProbs[step * classes : (step + 1) * classes]
            ranked = self.ranked[step * count : (step + 1) * count]
            own = min(len(self.ranks), max(int(self.alive) - int(self.first), 0))
            known = self.find_children(own)
            for k in range(own):
                self.start(k, row, ranked, known)
            self.pick(own, row, ranked, known)

    def is_child(self, child, parent):
        """Whether a beam's label, whose hash says so, is another's and a symbol more."""
        return self.beams[1][child] == self.beams[1][parent] + 1 and self.same(
            self.nodeParent[self.beams[2][child]], self.beams[2][parent]
        )

    def same(self, node, other):
        """Whether two nodes, equally deep, are of the same label."""
        while node != other:
            if self.nodeSymbol[node] != self.nodeSymbol[other]:
                return False
            node = self.nodeParent[node]
            other = self.nodeParent[other]
        return True

    def find_children(self, own):
        """Note the children of own beams: how many there are."""
        known = 0
        hashes = self.beams[3]
        beginnings = self.beams[4]
        for k in range(own):
            own_hash = hashes[int(self.first) + k]
            for child in range(int(self.alive)):
                if beginnings[child] == own_hash and self.is_child(child, int(self.first) + k):
                    self.children[0][known] = UNSIGNED_INT(k)
                    self.children[1][known] = self.beams[0][child]
                    known += 1
        return known

    def is_known(self, k, symbol, known):
        """Whether an own beam with a symbol more is another beam."""
        owners = self.children[0]
        symbols = self.children[1]
        place = 0
        while place < known and (symbols[place] != symbol or owners[place] != UNSIGNED_INT(k)):
            place += 1
        return place < known

    def extended(self, beam, symbol, row):
        """The probability of a beam with a symbol more: behind itself a symbol counts again only after a blank."""
        again = self.beams[1][beam] > 0 and self.beams[0][beam] == symbol
        before = float(self.blanks[beam]) if again else float(self.totals[beam])
        return log_mul(before, float(row[symbol]))

    def stays(self, beam, row):
        """The probability that a beam's last step is a symbol, and the label is as it was or becomes it."""
        stays = NEVER
        if self.beams[1][beam] > 0:
            symbol = self.beams[0][beam]
            stays = log_mul(float(self.symbols[beam]), float(row[symbol]))
            hashes = self.beams[3]
            beginning = self.beams[4][beam]
            for parent in range(int(self.alive)):
                if hashes[parent] == beginning and self.is_child(beam, parent):
                    stays = log_add(stays, self.extended(parent, symbol, row))
        return stays

    def start(self, k, row, ranked, known):
        """The three heads of an own beam."""
        beam = int(self.first) + k
        self.heads[4][k] = self.stays(beam, row)
        self.heads[0][k] = log_add(log_mul(float(self.totals[beam]), float(row[self.blankClass])), self.heads[4][k])
        self.heads[1][k] = NEVER
        last = self.beams[0][beam]
        if self.beams[1][beam] > 0 and not self.is_known(k, last, known):
            self.heads[1][k] = self.extended(beam, last, row)
        self.ranks[k] = 0
        self.seek(k, row, ranked, known)

    def seek(self, k, row, ranked, known):
        """The best of the other symbols, from a place in their order on."""
        beam = int(self.first) + k
        rank = int(self.ranks[k])
        while rank < len(ranked) and (
            (self.beams[1][beam] > 0 and ranked[rank] == self.beams[0][beam]) or self.is_known(k, ranked[rank], known)
        ):
            rank += 1
        self.ranks[k] = UNSIGNED_INT(rank)
        self.heads[2][k] = self.extended(beam, ranked[rank], row) if rank < len(ranked) else NEVER
        self.compare(k)

    def compare(self, k):
        """Note the best of an own beam's heads."""
        self.heads[3][k] = max(self.heads[0][k], self.heads[1][k], self.heads[2][k])

    def pick(self, own, row, ranked, known):
        """The best candidates, as many as there are beams at most."""
        picked = 0
        scores = self.heads[3]
        searching = True
        while searching and picked < len(self.candidateTotals):
            best = NEVER
            k = 0
            for place in range(own):
                if scores[place] > best:
                    best = scores[place]
                    k = place
            searching = best > NEVER
            if searching:
                self.take(picked, k, best, row, ranked, known)
                picked += 1
        self.found = UNSIGNED_INT(picked)

    def take(self, place, k, score, row, ranked, known):
        """The best head of an own beam becomes a candidate, the next one is the head."""
        beam = int(self.first) + k
        self.parents[place] = UNSIGNED_INT(beam)
        self.candidateTotals[place] = score
        self.candidateBlanks[place] = NEVER
        self.candidateSymbols[place] = score
        if self.heads[0][k] == score:
            self.added[place] = NOTHING
            self.candidateBlanks[place] = log_mul(float(self.totals[beam]), float(row[self.blankClass]))
            self.candidateSymbols[place] = self.heads[4][k]
            self.heads[0][k] = NEVER
            self.compare(k)
        elif self.heads[1][k] == score:
            self.added[place] = self.beams[0][beam]
            self.heads[1][k] = NEVER
            self.compare(k)
        else:
            self.added[place] = ranked[int(self.ranks[k])]
            self.ranks[k] += 1
            self.seek(k, row, ranked, known)


class CTCSelect(Vertex, Generic[P], name="popnn::CTCSelect"):
    """The best of several lists of candidates become the beams."""

    candidateBlanks: Input[VectorList[FLOAT]]
    candidateSymbols: Input[VectorList[FLOAT]]
    candidateTotals: Input[VectorList[FLOAT]]
    parents: Input[VectorList[UNSIGNED_INT]]
    added: Input[VectorList[UNSIGNED_INT]]
    found: Input[Vector[UNSIGNED_INT]]
    blanks: Output[Vector[P]]
    symbols: Output[Vector[P]]
    totals: Output[Vector[P]]
    beams: InOut[VectorList[UNSIGNED_INT]]
    before: Output[VectorList[UNSIGNED_INT]]
    taken: Output[Vector[UNSIGNED_INT]]  # of each list
    scores: Output[Vector[FLOAT]]  # of the next of each list, NEVER behind its end
    nodeParent: InOut[Vector[UNSIGNED_INT]]
    nodeSymbol: InOut[Vector[UNSIGNED_INT]]
    alive: InOut[UNSIGNED_INT]
    count: InOut[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]

    def compute(self):
        if self.count < self.dataLength:
            for field in range(len(self.beams)):
                self.copy(self.before[field], self.beams[field])
            for group in range(len(self.taken)):
                self.taken[group] = 0
                self.look(group)
            beam = 0
            group = self.best_list()
            while group >= 0 and beam < len(self.totals):
                self.become(beam, group, int(self.taken[group]))
                self.taken[group] += 1
                self.look(group)
                beam += 1
                group = self.best_list()
            self.alive = UNSIGNED_INT(beam)
        self.count += 1

    def copy(self, target, source):
        for beam in range(int(self.alive)):
            target[beam] = source[beam]

    def look(self, group):
        """Note the score of the next candidate of a list."""
        place = self.taken[group]
        self.scores[group] = self.candidateTotals[group][place] if place < self.found[group] else NEVER

    def best_list(self):
        """The list whose next candidate is the best, the first of equal ones; -1 where all are at their end."""
        best = NEVER
        which = -1
        for group in range(len(self.scores)):
            if self.scores[group] > best:
                best = self.scores[group]
                which = group
        return which

    def become(self, beam, group, place):
        """A candidate becomes a beam."""
        self.blanks[beam] = self.candidateBlanks[group][place]
        self.symbols[beam] = self.candidateSymbols[group][place]
        self.totals[beam] = self.scores[group]
        parent = self.parents[group][place]
        symbol = self.added[group][place]
        if symbol == NOTHING:
            for field in range(len(self.beams)):
                self.beams[field][beam] = self.before[field][parent]
        else:
            node = UNSIGNED_INT(1 + beam) + self.count * UNSIGNED_INT(len(self.totals))
            whole = self.before[3][parent]
            self.nodeParent[node] = self.before[2][parent]
            self.nodeSymbol[node] = symbol
            self.beams[0][beam] = symbol
            self.beams[1][beam] = self.before[1][parent] + 1
            self.beams[2][beam] = node
            self.beams[3][beam] = (whole ^ (symbol + 1)) * MIXED
            self.beams[4][beam] = whole


class CTCDecode(Vertex, Generic[P], name="popnn::CTCDecode", writes_all=("labelProbs", "labelLengths", "decodedLabels")):
    """The labels of the best beams, NOTHING behind their ends; a path without a beam is empty, of the probability 0."""

    totals: Input[Vector[P]]
    beams: Input[VectorList[UNSIGNED_INT]]
    nodeParent: Input[Vector[UNSIGNED_INT]]
    nodeSymbol: Input[Vector[UNSIGNED_INT]]
    alive: Input[UNSIGNED_INT]
    labelProbs: Output[Vector[FLOAT]]
    labelLengths: Output[Vector[UNSIGNED_INT]]
    decodedLabels: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        steps = len(self.decodedLabels) // len(self.labelProbs)
        for path in range(len(self.labelProbs)):
            self.decode(path, self.decodedLabels[path * steps : (path + 1) * steps])

    def decode(self, path, labels):
        there = UNSIGNED_INT(path) < self.alive
        length = int(self.beams[1][path]) if there else 0
        node = self.beams[2][path]
        self.labelProbs[path] = float(self.totals[path]) if there else NEVER
        self.labelLengths[path] = UNSIGNED_INT(length)
        for place in range(len(labels) - 1, -1, -1):
            labels[place] = NOTHING
            if place < length:
                labels[place] = self.nodeSymbol[node]
                node = self.nodeParent[node]
