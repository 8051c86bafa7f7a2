"""Places in tables: a tile or an IPU and an offset; a move is a list for every pair of IPUs."""

import random
from typing import Any

import attrs
import numpy as np
import pytest
from engine_random import ALL, RandomProgram
from executable_programs import PROGRAMS, several_ipus
from executable_runner import run
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import AtomicStoreError, Device, Executable, IPUModel, compileGraph
from pypoplar.executable.memory_layout import TILE_ALIGNMENT, MemoryLayout
from pypoplar.executable.move_lists import Moves
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.executable.verify.move_claims import COLUMNS
from pypoplar.interface.header_slots import HOST


def pairs_of(moves: Moves, move: int) -> list[tuple[int, int]]:
    """The source and target IPU of each list of a move."""
    return [(int(moves.source_ipu[entry]), int(moves.target_ipu[entry])) for entry in moves.lists_of(move)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_move_has_no_pair_of_ipus_twice(name: str) -> None:
    moves = PROGRAMS[name]().moves
    for move in range(len(moves.first_list) - 1):
        pairs = pairs_of(moves, move)
        assert len(set(pairs)) == len(pairs)


def test_moves_lead_between_ipus_within_them_and_to_and_from_the_host() -> None:
    moves = several_ipus().moves
    found = {pair for move in range(len(moves.first_list) - 1) for pair in pairs_of(moves, move)}
    assert found == {(source, target) for source in (HOST, 0, 1) for target in (HOST, 0, 1)} - {(HOST, HOST)}


def in_other_order(moves: Moves, numbers: random.Random) -> Moves:
    """The same moves, whose lists come in another order."""
    orders = [list(moves.lists_of(move)) for move in range(len(moves.first_list) - 1)]
    for order in orders:
        numbers.shuffle(order)
    lists = [entry for order in orders for entry in order]
    records = np.concatenate([np.array(moves.records_of(entry), np.int64) for entry in lists])
    sizes = [len(moves.records_of(entry)) for entry in lists]
    changed: dict[str, Any] = {name: getattr(moves, name)[records] for name in COLUMNS}
    changed |= {name: getattr(moves, name)[lists] for name in ("source_ipu", "target_ipu")}
    return attrs.evolve(moves, **changed, first=np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))))


@pytest.mark.parametrize("mode", ["native", "parallel", "interpret"])
def test_the_lists_of_a_move_may_be_done_in_any_order(mode: str) -> None:
    executable = several_ipus()
    for seed in range(3):
        other = attrs.evolve(executable, moves=in_other_order(executable.moves, random.Random(seed)))
        verify(other)
        assert run(other, mode) == run(executable, mode)


@pytest.mark.parametrize("mode", ["native", "parallel", "interpret"])
@pytest.mark.parametrize("wide", [COLUMNS, ("target_step",)], ids=["all columns", "one column"])
@pytest.mark.parametrize("name", ["transfers", "several_ipus"])
def test_moves_do_the_same_with_columns_of_64_bits(name: str, wide: tuple[str, ...], mode: str) -> None:
    executable = PROGRAMS[name]()
    assert {getattr(executable.moves, column).dtype for column in COLUMNS} == {np.dtype(np.int32)}
    columns: dict[str, Any] = {column: getattr(executable.moves, column).astype(np.int64) for column in wide}
    other = attrs.evolve(executable, moves=attrs.evolve(executable.moves, **columns))
    verify(other)
    assert run(other, mode) == run(executable, mode)


def device(ipus: int, tiles: int) -> Device:
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = ipus, tiles
    return model.createDevice()


def compiled(seed: int, ipus: int, tiles: int) -> Executable | None:
    """A random program for a machine of so many IPUs; None if its vertices store into one word."""
    program = RandomProgram(random.Random(seed), device(ipus, tiles), ALL, 4)
    try:
        return compileGraph(program.graph, program.programs)
    except AtomicStoreError:
        return None


@examples(25)
@given(st.integers(0, 1 << 32), st.sampled_from([(1, 12), (2, 6), (3, 4), (12, 1)]))
def test_what_is_compiled_for_several_ipus_passes_the_verifier(seed: int, machine: tuple[int, int]) -> None:
    executable = compiled(seed, *machine)
    if executable is not None:
        verify(executable)
        assert executable.layout.ipus == machine[0]


@examples(10)
@given(st.integers(0, 1 << 32), st.sampled_from([(2, 6), (3, 4)]))
def test_programs_for_several_ipus_do_the_same_in_both_engines(seed: int, machine: tuple[int, int]) -> None:
    executable = compiled(seed, *machine)
    if executable is not None:
        outcome = run(executable, "interpret")
        assert run(executable, "native") == outcome
        assert run(executable, "parallel") == outcome


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(1, 4))
def test_tiles_lie_end_to_end_in_their_ipu(sizes: list[int], ipus: int) -> None:
    layout = MemoryLayout(TILE_ALIGNMENT * np.tile(np.array(sizes, np.int64), ipus), ipus)
    for ipu in range(ipus):
        tiles = np.flatnonzero(layout.ipu == ipu)
        assert tiles.tolist() == list(range(ipu * len(sizes), (ipu + 1) * len(sizes)))
        ends = layout.offset[tiles] + layout.tile_bytes[tiles]
        assert layout.offset[tiles].tolist() == [0, *ends[:-1]]
        assert ends[-1] == layout.ipu_bytes[ipu]
