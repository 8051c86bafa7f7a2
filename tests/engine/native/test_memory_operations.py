"""The machine operations under the native engine: memory by address, calls by address, atomics."""

import ctypes

import numba
import numpy as np
import pytest
from numba import types

from pypoplar.engine.native import memory_operations as intrinsics
from pypoplar.engine.native.memory_operations import (
    LOAD,
    LOAD_INVARIANT,
    STORE,
    array_address,
    atomic_add,
    atomic_exchange,
    atomic_load,
    atomic_store,
    call_codelet,
    copy_memory,
    fill_memory,
    load_i64,
    move_memory,
    store_i64,
)

DTYPES = {
    "f32": np.float32, "f16": np.uint16, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip
BYTES = np.frombuffer(np.random.default_rng(7).bytes(64), np.uint8)


@pytest.mark.parametrize("code", DTYPES)
def test_a_load_gives_what_numpy_sees_and_a_store_writes_it_back(code):
    load, load_invariant, store = LOAD[code], LOAD_INVARIANT[code], STORE[code]
    dtype = np.dtype(DTYPES[code])

    @numba.njit
    def copy_all(source, target, other, count, size):
        for i in range(count):
            store(target + i * size, load(source + i * size))
            store(other + i * size, load_invariant(source + i * size))

    source = (BYTES % 2 if code == "bool" else BYTES).copy()
    target, other = np.zeros_like(source), np.zeros_like(source)
    count = source.size // dtype.itemsize
    copy_all(source.ctypes.data, target.ctypes.data, other.ctypes.data, count, dtype.itemsize)
    np.testing.assert_array_equal(source, target)
    np.testing.assert_array_equal(source, other)


def test_a_load_of_a_narrow_integer_keeps_its_sign():
    @numba.njit
    def first(address):
        return LOAD_I8(address) * 2

    LOAD_I8 = LOAD["i8"]
    assert first(np.array([-3], np.int8).ctypes.data) == -6


def test_copies_of_run_time_size_equal_numpys():
    @numba.njit
    def work(a, b):
        start = array_address(a)
        copy_memory(array_address(b), start, 5)
        move_memory(start + 1, start, 10)
        fill_memory(array_address(b) + 8, 0xFF, 3)

    a = np.arange(16, dtype=np.uint8)
    b = np.zeros(16, np.uint8)
    work(a, b)
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]
    assert b.tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 0]


def test_two_threads_meet_at_a_spin_barrier():
    @numba.njit(parallel=True)
    def meet(words, rounds, seen):
        for thread in numba.prange(2):
            address = array_address(words)
            for one in range(rounds):
                if atomic_add(address, 1) == 1:
                    atomic_exchange(address, 0)
                    atomic_store(address + 64, one + 1)
                else:
                    while atomic_load(address + 64) != one + 1:
                        intrinsics.pause()
                        intrinsics.yield_processor()
                seen[thread] += 1

    numba.set_num_threads(2)
    words, seen = np.zeros(16, np.int64), np.zeros(2, np.int64)
    meet(words, 100, seen)
    assert seen.tolist() == [100, 100]


def test_a_codelet_is_called_by_address_with_its_seven_arguments():
    @numba.cfunc(types.void(*[types.int64] * 7))
    def codelet(memory, rows, row_table, count, slots, results, context):
        store_i64(slots, memory + 10 * rows + 100 * row_table + 1000 * count + 10000 * results + 100000 * context)

    @numba.njit
    def call(address, slots):
        call_codelet(address, 1, 2, 3, 4, slots, 5, 6)
        return load_i64(slots)

    slots = ctypes.c_int64(0)
    assert call(codelet.address, ctypes.addressof(slots)) == 654321
