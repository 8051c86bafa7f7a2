"""Sweeps run as Python, and as machine code that is kept, refers to nothing, and is done without where there is no numba."""

from __future__ import annotations

import io
import math
import os
import struct
import subprocess
import sys
import threading
import time
import warnings
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from pypoplar import progress
from pypoplar.arrays import interval_algebra, interval_sweeps, run_sweeps
from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.compiler.exchange import message_sweeps
from pypoplar.compiler.flattening import move_sweeps
from pypoplar.compiler.memory import sharing_sweeps
from pypoplar.host_code import cache, machine
from pypoplar.host_code import sweep as sweeps
from pypoplar.host_code.sweep import Sweep, compiled, object_code, sweep

MODULES = (interval_sweeps, run_sweeps, message_sweeps, move_sweeps, sharing_sweeps)
ALL = [value for module in MODULES for value in vars(module).values() if isinstance(value, Sweep)]


@sweep
def doubled(values: Int64s, out: Int64s) -> int:
    """Twice each value."""
    for i in range(len(values)):
        out[i] = 2 * values[i]
    return len(values)


@sweep
def chosen(values: Int64s, which: Bools, least: int, out: Int64s) -> int:
    """Twice those that are chosen and not less than `least`."""
    count = 0
    for i in range(len(values)):
        if which[i] and values[i] >= least:
            out[count] = values[i]
            count += 1
    return doubled(out[:count], out)


@pytest.fixture
def at_once(monkeypatch):
    """Sweeps of this module are machine code from the first row on, and nothing of them is there yet."""
    monkeypatch.setattr(sweeps, "FEWEST_ROWS", 0)
    monkeypatch.setattr(sweeps, "LOOKED_FOR", 0)
    monkeypatch.setattr(sweeps, "COMPILED", 0)
    monkeypatch.setattr(sweeps, "_asked", sweeps._Asked())
    for one in (doubled, chosen):
        monkeypatch.setattr(one, "_code", None)
        monkeypatch.setattr(one, "_looked", False)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache that is empty."""
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_told", False)
    return tmp_path


def test_a_sweep_is_the_plain_python_that_it_is():
    out = [0, 0]
    assert (doubled([5, 1], out), out) == (2, [10, 2])


def test_machine_code_does_what_the_text_says_and_calls_what_it_calls():
    values, which = np.array([5, 1, 7, 2**61]), np.array([True, True, False, True])
    plain, swept = np.zeros(4, np.int64), np.zeros(4, np.int64)
    assert compiled(chosen)(values, which, 2, swept) == chosen(values, which, 2, plain) == 2
    assert swept.tolist() == plain.tolist() == [10, 2**62, 0, 0]


def test_what_is_read_may_lie_anyhow():
    values = np.broadcast_to(np.int64(3), 4)
    out = np.zeros(4, np.int64)
    code = compiled(doubled)
    assert (code(values, out), out.tolist()) == (4, [6, 6, 6, 6])
    assert (code(np.arange(8, dtype=np.int32)[::2], out), out.tolist()) == (4, [0, 4, 8, 12])


def undefined(code):
    """The symbols that object code of ELF refers to and does not have."""
    assert code[:5] == b"\x7fELF\x02"
    (headers,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, headers + size * number) for number in range(count)]
    names = set()
    for section in sections:
        if section[1] == 2:  # a table of symbols
            strings = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, home = struct.unpack_from("<IBBH", code, at)
                if name and home == 0:
                    names.add(code[strings + name : code.index(0, strings + name)].decode())
    return names


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="object code has another form there")
@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_the_machine_code_refers_to_nothing_but_copies_of_memory(one):
    assert undefined(object_code(one)) <= {"memcpy", "memmove", "memset"}


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="object code has another form there")
def test_symbols_that_are_missing_are_found():
    calls = "declare i64 @elsewhere()\ndefine i64 @here() {\n  %x = call i64 @elsewhere()\n  ret i64 %x\n}\n"
    assert undefined(machine.compile_text(calls)) == {"elsewhere"}


@sweep
def calling(values: Int64s) -> int:
    """No sweep: it calls the C library."""
    return int(math.lgamma(values[0]))


@sweep
def raising(values: Int64s) -> int:
    """No sweep: it raises."""
    if len(values) == 0:
        raise ValueError
    return len(values)


def test_what_calls_others_or_raises_is_no_sweep():
    with pytest.raises(AssertionError, match=r"the sweep calling calls .*lgamma"):
        object_code(calling)
    with pytest.raises(AssertionError, match="the sweep raising raises"):
        object_code(raising)


def test_code_is_made_once_and_kept_for_the_next_process(at_once, kept, monkeypatch):
    made = []
    monkeypatch.setattr(sweeps, "object_code", lambda one: made.append(one.name) or object_code(one))
    assert doubled.code(1) is doubled.code(1) is not None
    assert (made, cache.entries()) == (["doubled"], 1)
    doubled._code, doubled._looked = None, False
    out = np.zeros(2, np.int64)
    assert doubled.code(2)(np.array([1, 2]), out) == 2
    assert (out.tolist(), made) == ([2, 4], ["doubled"])


def test_code_that_is_kept_is_of_its_source_numba_and_processor(at_once, kept, monkeypatch):
    keys = []
    monkeypatch.setattr(sweeps, "cache", FakeCache(keys))
    monkeypatch.setattr(sweeps, "object_code", lambda one: DOUBLED)
    doubled.code(1)
    monkeypatch.setattr(sweeps, "numba_version", lambda: "0.99.1")
    doubled._code, doubled._looked = None, False
    doubled.code(1)
    assert len(set(keys)) == 2
    assert all(machine.host().identity in key and cache.fingerprint(__name__, *OURS) in key for key in keys)


def test_code_that_is_kept_is_of_the_sources_of_all_that_it_calls(at_once, kept, monkeypatch):
    keys = []
    monkeypatch.setattr(sweeps, "cache", FakeCache(keys))
    monkeypatch.setattr(sweeps, "object_code", lambda one: one.name.encode())
    monkeypatch.setattr(sweeps, "_callable", lambda one, loaded: None)
    monkeypatch.setattr(machine, "load", lambda code: None)
    calling = run_sweeps.cut_runs
    monkeypatch.setattr(calling, "_code", None)
    monkeypatch.setattr(calling, "_looked", False)
    calling.code(1)
    (key,) = keys
    assert cache.fingerprint("pypoplar.arrays.interval_sweeps", "pypoplar.arrays.run_sweeps", *OURS) in key


OURS = ("pypoplar.host_code.sweep", "pypoplar.host_code.machine")
DOUBLED = machine.compile_text("define i64 @pypoplar_sweep_doubled(i64* %words) {\n  ret i64 0\n}\n")


class FakeCache:
    """Keeps nothing but the keys."""

    fingerprint = staticmethod(cache.fingerprint)

    def __init__(self, keys):
        self.load = lambda key: None
        self.store = lambda key, code: keys.append(key)


def test_few_rows_and_processes_with_few_rows_need_no_code(at_once, kept, monkeypatch):
    monkeypatch.setattr(sweeps, "FEWEST_ROWS", 256)
    monkeypatch.setattr(sweeps, "LOOKED_FOR", 1000)
    monkeypatch.setattr(sweeps, "COMPILED", 2000)
    assert [doubled.code(rows) is None for rows in (255, 256, 700, 900, 300)] == [True, True, True, True, False]


def test_code_that_is_kept_is_used_before_any_would_be_made(at_once, kept, monkeypatch):
    doubled.code(1)
    doubled._code, doubled._looked = None, False
    monkeypatch.setattr(sweeps, "COMPILED", 10**9)
    monkeypatch.setattr(sweeps, "LOOKED_FOR", 1000)
    monkeypatch.setattr(sweeps, "_asked", sweeps._Asked())
    assert doubled.code(999) is None
    assert doubled.code(1) is not None


def test_a_cache_that_cannot_be_written_is_said_once_and_the_code_is_there(at_once, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_told", False)
    with pytest.warns(RuntimeWarning, match="compiled code is not kept, and each process compiles it anew"):
        code = doubled.code(1)
    assert code(np.array([4]), np.zeros(1, np.int64)) == 1
    assert chosen.code(1) is not None


@pytest.mark.parametrize("found", [None, "0.61.2"])
def test_without_numba_numpy_does_the_work_and_the_line_to_install_is_said_once(at_once, kept, monkeypatch, found):
    def version(name):
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(sweeps, "version", version)
    for name in ("numba_version", "_tell_without"):
        monkeypatch.setattr(sweeps, name, sweeps.once(getattr(sweeps, name).__wrapped__))
    with pytest.warns(RuntimeWarning, match=r"built by NumPy alone, which takes longer; pip install 'numba>=0\.62'"):
        assert doubled.code(1) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doubled.code(1) is None
    monkeypatch.setattr(interval_sweeps.join_intervals, "_code", None)
    begin, end = interval_algebra.union(np.array([4, 0, 2]), np.array([5, 1, 4]))
    assert (begin.tolist(), end.tolist()) == ([0, 2], [1, 5])


def test_a_numba_that_cannot_be_imported_is_told_once_and_numpy_does_the_work(at_once, kept, monkeypatch, tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.0 or less')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    for name in ("_import_problem", "_tell_without"):
        monkeypatch.setattr(sweeps, name, sweeps.once(getattr(sweeps, name).__wrapped__))
    told = r"numba [\d.]+ cannot be imported here \(Numba needs NumPy 2\.0 or less\): large graphs.*; pip install"
    with pytest.warns(RuntimeWarning, match=told):
        assert doubled.code(1) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doubled.code(1) is None


def test_where_few_rows_are_asked_for_a_missing_numba_is_not_missed(at_once, kept, monkeypatch):
    monkeypatch.setattr(sweeps, "numba_version", lambda: None)
    monkeypatch.setattr(sweeps, "COMPILED", 1000)
    assert doubled.code(999) is None


def test_where_memory_is_short_numpy_does_the_work_until_there_is_more(at_once, kept, monkeypatch):
    monkeypatch.setattr(sweeps, "COMPILING_BYTES", 1 << 62)
    assert doubled.code(1) is None
    monkeypatch.setattr(sweeps, "COMPILING_BYTES", 1 << 30)
    assert doubled.code(1) is not None


class Terminal(io.StringIO):
    """What standard error is for someone who looks."""

    def isatty(self):
        return True


@pytest.mark.parametrize("option", ["auto", "on", "off"])
def test_compiling_is_said_as_the_option_of_the_work_wants_it(at_once, kept, monkeypatch, option):
    written = Terminal()
    code = object_code(doubled)

    def slow(one):
        end = time.monotonic() + (0.3 if option == "off" else 60)
        while not written.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return code

    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sweeps, "COMPILING", progress.Announcement(sweeps.COMPILING._text))
    monkeypatch.setattr(sweeps, "object_code", slow)
    with progress.asking(option):
        doubled.code(1)
    assert progress.asked() == "auto"
    assert written.getvalue() == ("" if option == "off" else "compiling passes over arrays, once\n")


def test_threads_that_ask_at_once_get_the_same_code(at_once, kept, monkeypatch):
    made = []
    monkeypatch.setattr(sweeps, "object_code", lambda one: made.append(one.name) or object_code(one))
    found, start = [], threading.Barrier(4)

    def ask():
        start.wait()
        found.append(doubled.code(1))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (made, len(set(map(id, found)))) == (["doubled"], 1)


SCRIPT = """
import sys
import numpy as np
from pypoplar.arrays import interval_algebra
from pypoplar.host_code import sweep
rows = int(sys.argv[1])
begin = np.arange(rows)[::-1] * 2
interval_algebra.union(begin, begin + 1)
print("numba" in sys.modules, "llvmlite" in sys.modules, interval_algebra.join_intervals._code is not None)
"""


def test_numba_is_imported_by_the_first_process_with_a_large_list_only(kept):
    def run(rows):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(rows)], check=True, capture_output=True, text=True, env={**os.environ}
        )
        return done.stdout.split()

    assert run(255) == run(sweeps.LOOKED_FOR - 1) == ["False", "False", "False"]
    assert run(sweeps.COMPILED) == ["True", "True", "True"]
    assert run(sweeps.LOOKED_FOR) == ["False", "True", "True"]
    assert run(255) == ["False", "False", "False"]
