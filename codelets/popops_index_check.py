"""Device code of popops: whether indices are out of range."""

from pypoplar import INT, UNSIGNED_INT, Input, Output, Vector, VectorList, Vertex


class IndicesOutOfRange(Vertex, name="popops::IndicesOutOfRange"):
    """`found` is 1 if an index of a row is not below its bound."""

    indices: Input[VectorList[UNSIGNED_INT]]
    bounds: Vector[UNSIGNED_INT]
    found: Output[INT]

    def compute(self):
        found = 0
        for row in range(len(self.indices)):
            for index in self.indices[row]:
                if index >= self.bounds[row]:
                    found = 1
        self.found = found


class AnyFound(Vertex, name="popops::AnyFound"):
    """`any` is 1 if one of `found` is not 0."""

    found: Input[Vector[INT]]
    any: Output[INT]

    def compute(self):
        found = 0
        for one in self.found:
            if one != 0:
                found = 1
        self.any = found
