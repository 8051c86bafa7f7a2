"""PyTorch's operations that are captured as several others: importing this package enters their forms."""

from pypoplar.poptorch.operators.forms import (
    distances,  # noqa: F401 (its forms are entered)
    layer_formulas,  # noqa: F401 (the same)
    medians,  # noqa: F401 (the same)
    most_frequent,  # noqa: F401 (the same)
    next_numbers,  # noqa: F401 (the same)
    pools,  # noqa: F401 (the same)
    sampled_images,  # noqa: F401 (the same)
    searches,  # noqa: F401 (the same)
    strided_views,  # noqa: F401 (the same)
)
