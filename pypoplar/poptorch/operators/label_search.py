"""The likeliest labels of connectionist temporal classification."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.operators.tensor_arguments import check_number, check_tensor
from pypoplar.tracebacks import public

NO_PATH = -65504.0  # the logarithm of the probability of a path that there is not
NO_SYMBOL = -1  # behind the end of a path


@torch.library.custom_op(
    "poptorch::ctc_beam_search_decoder",
    mutates_args=(),
    schema="(Tensor probs, Tensor lengths, int blank, int width, int paths) -> Tensor[]",
)
def _search(probs: torch.Tensor, lengths: torch.Tensor, blank: int, width: int, paths: int) -> list[torch.Tensor]:
    batch = probs.shape[1]
    results = _empty(probs, paths)
    results[0].fill_(NO_PATH)
    results[1].zero_()
    results[2].fill_(NO_SYMBOL)
    for sample in range(batch):
        rows = probs[: int(lengths[sample]), sample].double().tolist()
        for number, (path, value) in enumerate(_likeliest(rows, blank, width)[:paths]):
            results[0][sample, number] = value
            results[1][sample, number] = len(path)
            results[2][sample, number, : len(path)] = torch.tensor(path, dtype=torch.int32)
    return results


@_search.register_fake
def _(probs: torch.Tensor, lengths: torch.Tensor, blank: int, width: int, paths: int) -> list[torch.Tensor]:
    return _empty(probs, paths)


def _empty(probs: torch.Tensor, paths: int) -> list[torch.Tensor]:
    time, batch, _ = probs.shape
    counts = [probs.new_empty([batch, paths], dtype=torch.int32), probs.new_empty([batch, paths, time], dtype=torch.int32)]
    return [probs.new_empty([batch, paths]), *counts]


def _likeliest(rows: list[list[float]], blank: int, width: int) -> list[tuple[tuple[int, ...], float]]:
    """Labels with the logarithms of their probabilities, best first, as a prefix beam search finds them."""
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, -math.inf)}  # that end with a blank, and with a symbol
    for row in rows:
        grown: dict[tuple[int, ...], tuple[float, float]] = defaultdict(lambda: (-math.inf, -math.inf))
        for path, (ended, open_) in beams.items():
            for symbol, value in enumerate(row):
                either = _log_sum(ended, open_) + value
                if symbol == blank:
                    grown[path] = _log_sum(grown[path][0], either), grown[path][1]
                elif path and symbol == path[-1]:
                    grown[path] = grown[path][0], _log_sum(grown[path][1], open_ + value)
                    longer = (*path, symbol)
                    grown[longer] = grown[longer][0], _log_sum(grown[longer][1], ended + value)
                else:
                    longer = (*path, symbol)
                    grown[longer] = grown[longer][0], _log_sum(grown[longer][1], either)
        beams = dict(sorted(grown.items(), key=lambda one: -_log_sum(*one[1]))[:width])
    found = [(path, _log_sum(*values)) for path, values in beams.items()]
    return [one for one in found if one[1] > -math.inf]


def _log_sum(a: float, b: float) -> float:
    low, high = sorted((a, b))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@public
def ctc_beam_search_decoder(
    probs: torch.Tensor, lengths: torch.Tensor, blank: int = 0, beam_width: int = 100, top_paths: int = 1
) -> list[torch.Tensor]:
    """The likeliest labels of each sample by connectionist temporal classification, best first, as a prefix beam search finds them.

    Parameters
    ----------
    probs:
        [time, batch, classes] Logarithms of probabilities, float or half.
    lengths:
        [batch] Integers: how much of the time is each sample's.
    blank:
        The class that stands for no symbol.
    beam_width:
        How many prefixes the search keeps at each time.
    top_paths:
        How many labels it gives of a sample, at most `beam_width`.

    Returns
    -------
    list[torch.Tensor]
        The logarithms of the labels' probabilities [batch, top_paths], their lengths [batch, top_paths], and their symbols [batch,
        top_paths, time], which are -1 behind the end. There is no gradient.

    Raises
    ------
    TensorShapeError
        For `probs` of another shape or type.
    PoplarTypeError
        For `lengths` of another shape or type.
    InvalidOption
        For a `blank` that is no class, and numbers below 1.
    """
    call: str = "ctc_beam_search_decoder"
    check_tensor(call, "probs", probs)
    check_tensor(call, "lengths", lengths)
    if probs.dim() != 3 or probs.dtype not in (torch.float32, torch.float16):
        raise TensorShapeError(f"poptorch.{call} takes probs [time, batch, classes] of float or half, got {list(probs.shape)}")
    if list(lengths.shape) != [probs.shape[1]] or lengths.dtype.is_floating_point or lengths.dtype is torch.bool:
        raise PoplarTypeError(f"poptorch.{call} takes integers [{probs.shape[1]}] for lengths, got {list(lengths.shape)}")
    for name, number in (("beam_width", beam_width), ("top_paths", top_paths)):
        check_number(call, name, number, 1)
    check_number(call, "blank", blank, 0)
    if blank >= probs.shape[2]:
        raise InvalidOption(f"poptorch.{call}: blank is one of {probs.shape[2]} classes, got {blank}")
    if top_paths > beam_width:
        raise InvalidOption(f"poptorch.{call}: top_paths is at most beam_width, {beam_width}, got {top_paths}")
    results: Any = _search(probs.detach(), lengths, blank, beam_width, top_paths)
    return list(results)
