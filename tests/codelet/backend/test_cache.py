"""The cache of machine code: kept between processes, never trusted blindly."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from native_rig import run_native
from written_codelets import DOT, OUT, X, codelet, f32, floats, i32, ordered_dot

from pypoplar.codelet.backend import cache
from pypoplar.codelet.backend import native_codelet as native
from pypoplar.codelet.ir.typed import Apply, Price, Store
from pypoplar.codelet.llvm import machine


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "_compiled", {})
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch):
    """The texts that were compiled."""
    texts = []
    compile_text = machine.compile_text
    monkeypatch.setattr(machine, "compile_text", lambda text: texts.append(text) or compile_text(text))
    return texts


def files(directory):
    return sorted((directory / "compiled").glob("*"))


def check_dot():
    vertices = [{"a": floats(20), "b": floats(20), "out": 0} for _ in range(9)]
    outcome = run_native(DOT, vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["a"], one["b"]) for one in vertices]


def forget_process():
    native._compiled.clear()


def test_what_was_compiled_once_is_loaded_from_then_on(compilations, directory):
    check_dot()
    assert len(compilations) == 1
    forget_process()
    check_dot()
    assert len(compilations) == 1
    assert cache.entries() == 1
    assert cache.size() == sum(one.stat().st_size for one in files(directory)) > 1000


def test_only_the_user_can_read_or_write_the_cache(directory):
    check_dot()
    assert stat.S_IMODE((directory / "compiled").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files(directory))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"\0" * len(data),
        lambda data: data[:-200] + bytes([data[-200] ^ 1]) + data[-199:],
        lambda data: os.urandom(500),
        lambda data: data + b"more",
    ],
    ids=["empty", "cut", "zeros", "one bit", "garbage", "longer"],
)
def test_a_damaged_entry_is_compiled_anew(damage, compilations, directory):
    check_dot()
    (entry,) = files(directory)
    entry.write_bytes(damage(entry.read_bytes()))
    forget_process()
    check_dot()
    assert len(compilations) == 2
    forget_process()
    check_dot()
    assert len(compilations) == 2


def price(slots):
    return codelet(
        ["out output scalar f32"], Price(slots), Apply(X, "copy_f32", (f32(1.0),), 0), Store(OUT, i32(0), X, 0, checked=False)
    )


def test_an_entry_under_the_name_of_another_is_found_out(compilations, directory):
    run_native(price(3), [{"out": 0}])
    (first,) = files(directory)
    run_native(price(7), [{"out": 0}])
    (second,) = set(files(directory)) - {first}
    second.write_bytes(first.read_bytes())
    forget_process()
    assert run_native(price(7), [{"out": 0}]).slots == [7]
    assert run_native(price(3), [{"out": 0}]).slots == [3]
    assert len(compilations) == 3


def test_prices_literals_and_versions_are_told_apart(directory):
    def constant(value):
        return codelet(["out output scalar f32"], Apply(X, "copy_f32", (f32(value),), 0), Store(OUT, i32(0), X, 0, checked=False))

    for value in (0.0, -0.0, 1.0, 2.0):
        got = run_native(constant(value), [{"out": 5}]).fields[0]["out"]
        np.testing.assert_array_equal(got.view(np.uint32), np.float32([value]).view(np.uint32))
    run_native(constant(1.0), [{"out": 5}], floating_point_checks=True)
    assert len(files(directory)) == 5


def test_sources_of_the_code_are_part_of_an_entrys_name(monkeypatch, compilations):
    check_dot()
    forget_process()
    monkeypatch.setattr(cache, "fingerprint", lambda *modules: "another version")
    check_dot()
    assert len(compilations) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")
def test_a_directory_that_is_not_the_users_own_is_not_used(monkeypatch, compilations, directory):
    check_dot()
    forget_process()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    check_dot()
    assert len(compilations) == 2
    assert cache.entries() == 0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")
def test_a_directory_that_others_may_write_to_is_not_used(compilations, directory):
    check_dot()
    (directory / "compiled").chmod(0o777)
    forget_process()
    check_dot()
    assert len(compilations) == 2


def test_without_a_directory_to_write_to_everything_works(monkeypatch, compilations, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "file"))
    check_dot()
    forget_process()
    check_dot()
    assert len(compilations) == 2
    assert (cache.entries(), cache.size()) == (0, 0)
    cache.clear()


def test_a_read_only_cache_is_read(monkeypatch, compilations, directory):
    check_dot()
    forget_process()

    def refuse(*arguments, **options):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "written_whole", refuse)
    check_dot()
    assert len(compilations) == 1
    run_native(price(1), [{"out": 0}])
    assert len(files(directory)) == 1


def test_clearing_deletes_the_entries_and_nothing_else(directory):
    check_dot()
    directory.joinpath("mine.txt").write_text("keep")
    assert cache.entries() == 1
    cache.clear()
    assert cache.entries() == 0
    assert directory.joinpath("mine.txt").read_text() == "keep"


def test_the_oldest_entries_go_when_there_are_too_many(monkeypatch, directory):
    monkeypatch.setattr(cache, "MOST_ENTRIES", 8)
    monkeypatch.setattr(cache, "_LOOK_AFTER", 1)
    for i in range(9):
        cache.store(f"entry {i}", b"x")
        os.utime(cache._path(f"entry {i}"), (i, i))
    cache.store("last", b"y")
    assert cache.entries() == 7
    assert cache.load("entry 0") is None
    assert cache.load("entry 8") == b"x"


def test_the_default_directory_is_the_users(monkeypatch):
    monkeypatch.delenv("PYPOPLAR_CACHE_DIR")
    assert "pypoplar" in cache.location().name


def test_processes_and_threads_may_store_at_once(directory):
    script = """
from pypoplar.codelet.backend import cache
for i in range(200):
    key, content = f"key {i % 5}", bytes([i % 5]) * 10000
    assert cache.store(key, content)
    assert cache.load(key) == content
"""
    others = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    threads = [threading.Thread(target=exec, args=(script, {})) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.wait() for one in others] == [0, 0]
    assert cache.entries() == 5
    assert len(files(directory)) == 5
