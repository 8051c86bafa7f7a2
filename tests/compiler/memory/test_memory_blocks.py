"""Where blocks of memory begin: as most of what is demanded of them wants it, each aligned, none over another."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.compiler.memory.memory_blocks import BLOCK_ALIGNMENT, Demands, choose_leads, packed, widest_on_tiles

ALIGNMENTS = [4, 8, 16, 32]


@st.composite
def demanded(draw):
    """The widths of some blocks, and demands on them: (block, place, alignment, bytes)."""
    widths = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4))
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, len(widths) - 1), st.integers(-40, 80), st.sampled_from(ALIGNMENTS), st.sampled_from([4, 8, 20])
            ),
            max_size=12,
        )
    )
    return np.array(widths), np.array(rows, np.int64).reshape(-1, 4)


def met(rows, lead):
    """Of the demands on a block those that are met if it begins with `lead` bytes."""
    return rows[(rows[:, 1] + lead) % rows[:, 2] == 0]


@given(demanded())
def test_no_other_beginning_of_a_block_meets_demands_on_more_bytes_nor_is_nearer(made):
    widths, rows = made
    leads = choose_leads(widths, Demands(*rows.T))
    for block, (width, lead, alignment) in enumerate(zip(widths, leads.lead, leads.alignment, strict=True)):
        own = rows[rows[:, 0] == block]
        assert lead % max(width, 4) == 0  # as it was: elements lie whole, and no two blocks share a word
        best = met(own, lead)[:, 3].sum()
        for other in range(0, 64, max(width, 4)):
            bytes = met(own, other)[:, 3].sum()
            assert bytes < best or (bytes == best and other >= lead)
        assert alignment == max([BLOCK_ALIGNMENT, *met(own, lead)[:, 2]])


def test_without_demands_blocks_begin_at_multiples_of_8():
    leads = choose_leads(np.array([4, 2]), Demands(*np.zeros((4, 0), np.int64)))
    assert (leads.lead.tolist(), leads.alignment.tolist()) == ([0, 0], [8, 8])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.sampled_from([8, 16, 32]))))
def test_packed_blocks_are_aligned_and_lie_apart(blocks):
    tile, size, alignment = np.array(sorted(blocks, key=lambda block: block[0]), np.int64).reshape(-1, 3).T
    offset, reach = packed(tile, size, alignment, 3)
    assert (offset % alignment == 0).all()
    for number in range(3):
        own = np.flatnonzero((tile == number) & (size > 0))
        places = sorted(zip(offset[own], offset[own] + size[own], strict=True))
        assert all(end <= begin for (_, end), (begin, _) in pairwise(places))
        assert reach[number] == (-(-size[own] // alignment[own]) * alignment[own]).sum()
        assert widest_on_tiles(tile, alignment, 3)[number] == max([8, *alignment[tile == number]])


def test_blocks_that_need_no_more_stay_in_their_order():
    tile = np.array([0, 0, 1])
    offset, reach = packed(tile, np.array([4, 12, 8]), np.full(3, 8), 2)
    assert (offset.tolist(), reach.tolist()) == ([0, 8, 0], [24, 8])
