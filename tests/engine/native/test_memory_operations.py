"""The machine operations under the native engine: memory by address, calls by address, atomics."""

import ctypes
import threading

import numpy as np
import pytest
from driver_units import compiled

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
    pause,
    store_i64,
    store_u8,
    store_u32,
    yield_processor,
)
from pypoplar.engine.native.unit import entry

BYTES = np.frombuffer(np.random.default_rng(7).bytes(64), np.uint8)


@entry
def widen_u8(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_i64(target + 8 * i, load_u8(source + i))
    return 0


@entry
def widen_i32(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_i64(target + 8 * i, load_i32(source + 4 * i))
    return 0


@entry
def widen_u32(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_i64(target + 8 * i, load_u32(source + 4 * i))
    return 0


@entry
def widen_i64(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_i64(target + 8 * i, load_i64(source + 8 * i))
    return 0


@entry
def cut_u8(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_u8(target + i, load_i64(source + 8 * i))
    return 0


@entry
def cut_u32(source: int, target: int, count: int) -> int:
    for i in range(count):
        store_u32(target + 4 * i, load_i64(source + 8 * i))
    return 0


@pytest.mark.parametrize(
    ("function", "dtype"), [(widen_u8, np.uint8), (widen_i32, np.int32), (widen_u32, np.uint32), (widen_i64, np.int64)]
)
def test_a_load_gives_what_numpy_sees(function, dtype):
    values = BYTES.view(dtype)
    target = np.zeros(values.size, np.int64)
    compiled(function)(values.ctypes.data, target.ctypes.data, values.size)
    assert target.tolist() == values.tolist()


@pytest.mark.parametrize(("function", "dtype"), [(cut_u8, np.uint8), (cut_u32, np.uint32)])
def test_a_store_keeps_the_low_bits(function, dtype):
    values = BYTES.view(np.int64)
    target = np.zeros(values.size + 1, dtype)
    compiled(function)(values.ctypes.data, target.ctypes.data, values.size)
    assert target.tolist() == [*values.astype(dtype).tolist(), 0]


@entry
def copy_five(source: int, target: int) -> int:
    copy_memory(target, source, 5)
    return 0


def test_copies_of_run_time_size_equal_numpys():
    source, target = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    compiled(copy_five)(source.ctypes.data, target.ctypes.data)
    assert target.tolist() == [0, 1, 2, 3, 4, *[0] * 11]


@entry
def meet(address: int, rounds: int) -> int:
    seen = 0
    for number in range(rounds):
        if atomic_add(address, 1) == 1:
            atomic_store(address, 0)
            atomic_store(address + 64, number + 1)
        else:
            while atomic_load(address + 64) != number + 1:
                pause()
                yield_processor()
        seen += 1
    return seen


def test_two_threads_meet_at_a_spin_barrier():
    words, function, seen = np.zeros(16, np.int64), compiled(meet), []
    threads = [threading.Thread(target=lambda: seen.append(function(words.ctypes.data, 100))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [100, 100]


@entry
def call(address: int, slots: int) -> int:
    call_codelet(address, 1, 2, 3, 4, slots, 5, 6)
    return load_i64(slots)


def test_a_codelet_is_called_by_address_with_its_seven_arguments():
    word = ctypes.c_int64

    @ctypes.CFUNCTYPE(None, *[word] * 7)
    def codelet(memory, rows, row_table, count, slots, results, context):
        word.from_address(slots).value = memory + 10 * rows + 100 * row_table + 1000 * count + 10000 * results + 100000 * context

    slots = word(0)
    assert compiled(call)(ctypes.cast(codelet, ctypes.c_void_p).value, ctypes.addressof(slots)) == 654321
