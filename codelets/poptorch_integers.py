"""Device code of pypoplar.poptorch: integers that PyTorch computes with 64 bits."""

from pypoplar import INT, LONGLONG, Input, MultiVertex, Output, Vector, ipu


class NarrowChecked(MultiVertex, name="poptorch::NarrowChecked", writes_all="out"):
    """out = in, all of which has to fit into 32 bits."""

    in_: Input[Vector[LONGLONG]]
    out: Output[Vector[INT]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.in_):
            value = self.in_[i]
            narrow = INT(value)
            ipu.check(LONGLONG(narrow) == value, "an int64 result does not fit into the 32 bits that integers have on the IPU")
            self.out[i] = narrow
