"""What the code of a codelet looks after besides indices, and whether it may round at random."""

from __future__ import annotations

from attrs import frozen


@frozen
class Checks:
    """Each combination is a version of the code of its own, and the plain one pays for none."""

    touches: bool = False  # which elements are read and written
    uninitialised: bool = False  # reads of memory that nothing has written
    floating_point: bool = False  # floating-point exceptions
    flops: bool = False  # how many floating-point operations are done, and bytes loaded and stored
    blocks: bool = False  # how often each block runs
    stochastic: bool = False  # halves are rounded at random while the context says so

    @property
    def only_counts(self) -> bool:
        """Whether nothing is checked but indices."""
        return not (self.touches or self.uninitialised or self.floating_point)

    @property
    def keeps_scalars(self) -> bool:
        """Whether the values of scalar fields may be kept in locals."""
        return not (self.touches or self.uninitialised)
