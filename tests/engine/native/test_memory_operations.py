"""The machine operations under the native engine: memory by address, calls by address, atomics."""

import ctypes

import numba
import numpy as np
import pytest
from numba import types

from pypoplar.engine.native import memory_operations as intrinsics
from pypoplar.engine.native.memory_operations import (
    atomic_add,
    atomic_load,
    atomic_store,
    call_codelet,
    copy_memory,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    store_i64,
    store_u8,
    store_u32,
)

LOADS = {"u8": (load_u8, np.uint8), "i32": (load_i32, np.int32), "u32": (load_u32, np.uint32), "i64": (load_i64, np.int64)}
STORES = {"u8": store_u8, "u32": store_u32, "i64": store_i64}
BYTES = np.frombuffer(np.random.default_rng(7).bytes(64), np.uint8)


@pytest.mark.parametrize("code", LOADS)
def test_a_load_gives_what_numpy_sees(code):
    load, dtype = LOADS[code]

    @numba.njit
    def load_all(source, target, size):
        for i in range(target.size):
            target[i] = load(source + i * size)

    target = np.zeros(BYTES.size // np.dtype(dtype).itemsize, dtype)
    load_all(BYTES.ctypes.data, target, target.itemsize)
    np.testing.assert_array_equal(target, BYTES.view(dtype))


@pytest.mark.parametrize("code", STORES)
def test_a_store_writes_back_what_was_loaded(code):
    (load, dtype), store = LOADS[code], STORES[code]

    @numba.njit
    def copy_all(source, target, count, size):
        for i in range(count):
            store(target + i * size, load(source + i * size))

    target, size = np.zeros_like(BYTES), np.dtype(dtype).itemsize
    copy_all(BYTES.ctypes.data, target.ctypes.data, BYTES.size // size, size)
    np.testing.assert_array_equal(BYTES, target)


def test_a_load_of_a_narrow_integer_keeps_its_sign():
    @numba.njit
    def first(address):
        return load_i32(address) * 2

    assert first(np.array([-3], np.int32).ctypes.data) == -6


def test_copies_of_run_time_size_equal_numpys():
    @numba.njit
    def work(source, target):
        copy_memory(target, source, 5)

    source, target = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    work(source.ctypes.data, target.ctypes.data)
    assert target.tolist() == [0, 1, 2, 3, 4, *[0] * 11]


def test_two_threads_meet_at_a_spin_barrier():
    @numba.njit(parallel=True)
    def meet(address, rounds, seen):
        for thread in numba.prange(2):
            for one in range(rounds):
                if atomic_add(address, 1) == 1:
                    atomic_store(address, 0)
                    atomic_store(address + 64, one + 1)
                else:
                    while atomic_load(address + 64) != one + 1:
                        intrinsics.pause()
                        intrinsics.yield_processor()
                seen[thread] += 1

    numba.set_num_threads(2)
    words, seen = np.zeros(16, np.int64), np.zeros(2, np.int64)
    meet(words.ctypes.data, 100, seen)
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
