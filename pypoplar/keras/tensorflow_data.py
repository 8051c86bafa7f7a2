"""`tf.data.Dataset` for scripts that run where TensorFlow is not installed: elements, batches and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Self

import keras
import numpy as np
import torch
import torch.utils._pytree as pytree

from pypoplar.errors import InvalidOption, PoplarTypeError

Elements = Callable[[], Iterator[Any]]
INFINITE = -1


def _tensor(leaf: Any) -> torch.Tensor:
    return leaf if isinstance(leaf, torch.Tensor) else torch.as_tensor(np.asarray(leaf))


class Dataset(keras.utils.PyDataset):
    """Elements one after the other, each a tensor or a structure of them. Keras reads its batches as they come."""

    def __init__(self, elements: Elements, size: int | None) -> None:
        super().__init__()
        self._elements, self._size = elements, size
        self._reading: Iterator[Any] | None = None

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The slices of tensors along their first dimension.

        Parameters
        ----------
        tensors:
            A tensor, an array, or a structure of them, of one size.

        Raises
        ------
        InvalidOption
            If their sizes differ.
        """
        leaves, structure = pytree.tree_flatten(tensors, is_leaf=lambda part: isinstance(part, list))
        given = [_tensor(leaf) for leaf in leaves]
        sizes = {int(one.shape[0]) for one in given}
        if len(sizes) != 1:
            raise InvalidOption(f"Dataset.from_tensor_slices: tensors have as many slices as each other, got {sorted(sizes)}")
        (size,) = sizes
        return Dataset(lambda: (pytree.tree_unflatten([one[row] for one in given], structure) for row in range(size)), size)

    def _with(self, elements: Elements, size: int | None) -> Dataset:
        return Dataset(elements, size)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None) -> Dataset:
        """What a function gives for each element.

        Parameters
        ----------
        map_func:
            It takes an element; of a tuple its parts.
        num_parallel_calls, deterministic:
            They change nothing.
        """

        def elements() -> Iterator[Any]:
            for one in self:
                yield map_func(*one) if isinstance(one, tuple) else map_func(one)

        return self._with(elements, self._size)

    def batch(self, batch_size: int, drop_remainder: bool = False, **_: Any) -> Dataset:
        """Elements joined, so many at a time.

        Parameters
        ----------
        batch_size:
            How many.
        drop_remainder:
            Whether the last ones are left out where they are fewer.
        """
        if type(batch_size) is not int or batch_size < 1:
            raise PoplarTypeError(f"Dataset.batch takes a whole number from 1 on, got {batch_size!r}")

        def elements() -> Iterator[Any]:
            reading = iter(self)
            while rows := list(islice(reading, batch_size)):
                if len(rows) < batch_size and drop_remainder:
                    return
                yield pytree.tree_map(lambda *leaves: torch.stack([_tensor(leaf) for leaf in leaves]), *rows)

        whole, rest = (None, 0) if self._size is None else divmod(self._size, batch_size)
        size = whole if whole is None or whole == INFINITE or drop_remainder or not rest else whole + 1
        return self._with(elements, INFINITE if self._size == INFINITE else size)

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """The elements in another order, each drawn from the next `buffer_size`.

        Parameters
        ----------
        buffer_size:
            From how many an element is drawn.
        seed:
            Of the order; None: another one each time.
        reshuffle_each_iteration:
            Whether each time has an order of its own.
        """
        generator = np.random.default_rng(seed)

        def elements() -> Iterator[Any]:
            drawing = generator if reshuffle_each_iteration else np.random.default_rng(seed)
            held: list[Any] = []
            for one in self:
                held.append(one)
                if len(held) >= buffer_size:
                    yield held.pop(int(drawing.integers(len(held))))
            while held:
                yield held.pop(int(drawing.integers(len(held))))

        return self._with(elements, self._size)

    def repeat(self, count: int | None = None) -> Dataset:
        """The elements again and again.

        Parameters
        ----------
        count:
            How often; None: for ever.
        """
        forever = count is None or count < 0

        def elements() -> Iterator[Any]:
            done = 0
            while forever or done < (count or 0):
                yield from self
                done += 1

        return self._with(elements, INFINITE if forever else None if self._size is None else self._size * (count or 0))

    def take(self, count: int) -> Dataset:
        """The first elements.

        Parameters
        ----------
        count:
            How many.
        """
        size = count if self._size == INFINITE else None if self._size is None else min(count, self._size)
        return self._with(lambda: islice(iter(self), count), size)

    def skip(self, count: int) -> Dataset:
        """The elements behind the first ones.

        Parameters
        ----------
        count:
            How many are left out.
        """
        size = self._size if self._size in (None, INFINITE) else max(0, (self._size or 0) - count)
        return self._with(lambda: islice(iter(self), count, None), size)

    def prefetch(self, buffer_size: Any = None) -> Self:
        """The data set itself: elements are made when they are read.

        Parameters
        ----------
        buffer_size:
            It changes nothing.
        """
        return self

    def cache(self, filename: str = "") -> Dataset:
        """The elements, which are kept once they were made.

        Parameters
        ----------
        filename:
            They are kept in memory, whatever it is.
        """
        kept: list[Any] = []

        def elements() -> Iterator[Any]:
            if not kept:
                kept.extend(self)
            return iter(kept)

        return self._with(elements, self._size)

    def cardinality(self) -> int:
        """How many elements there are: -1 for no end, -2 where that is not known."""
        return -2 if self._size is None else self._size

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as arrays."""
        return (pytree.tree_map(lambda leaf: _tensor(leaf).numpy(), one) for one in self)

    def __iter__(self) -> Iterator[Any]:
        return self._elements()

    # what Keras asks

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has; None for no end."""
        if self._size is None:
            self._size = sum(1 for _ in self)
        return None if self._size == INFINITE else self._size

    def __len__(self) -> int:
        return self.num_batches or 0

    def __getitem__(self, index: int) -> Any:
        """The next batch, whatever the number: a data set has an order of its own."""
        if self._reading is None:
            self._reading = iter(self)
        try:
            return next(self._reading)
        except StopIteration:
            self._reading = iter(self)
            return next(self._reading)

    def on_epoch_begin(self) -> None:
        """An epoch begins: with the first element, unless there is no end."""
        if self._size != INFINITE:
            self._reading = None
