"""The cache of machine code: kept between processes, never trusted blindly."""

import os
import stat
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest
from native_rig import run_native
from written_codelets import OUT, X, codelet, f32, i32

from pypoplar.codelet.backend import native_codelet as native
from pypoplar.codelet.ir.typed import Apply, Price, Store
from pypoplar.host_code import cache, machine


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "_compiled", {})
    monkeypatch.setattr(cache, "_told", False)
    return tmp_path / "cache"


@pytest.fixture
def owned_by(monkeypatch):
    """Lets everything that is looked at with some functions of `os` belong to a user."""

    def pretend(user, *functions):
        def owned(function):
            return lambda *arguments, **options: os.stat_result(
                [user if place == 4 else value for place, value in enumerate(function(*arguments, **options))]
            )

        for name in functions:
            monkeypatch.setattr(os, name, owned(getattr(os, name)))

    return pretend


@pytest.fixture
def compilations(monkeypatch):
    """The texts that were compiled."""
    texts = []
    compile_text = machine.compile_text
    monkeypatch.setattr(machine, "compile_text", lambda text: texts.append(text) or compile_text(text))
    return texts


def files(directory):
    return sorted((directory / "compiled").glob("*"))


def price(slots):
    return codelet(
        ["out output scalar f32"], Price(slots), Apply(X, "copy_f32", (f32(1.0),), 0), Store(OUT, i32(0), X, 0, checked=False)
    )


def check_code():
    """Run a small codelet, which takes little time to compile."""
    outcome = run_native(price(2), [{"out": 0}])
    assert (outcome.slots, outcome.fields[0]["out"][0]) == ([2], 1)


def forget_process():
    native._compiled.clear()


def test_what_was_compiled_once_is_loaded_from_then_on(compilations, directory):
    check_code()
    assert len(compilations) == 1
    forget_process()
    check_code()
    assert len(compilations) == 1
    assert cache.entries() == 1
    assert cache.size() == sum(one.stat().st_size for one in files(directory)) >= len(machine.compile_text(compilations[0]))


def test_only_the_user_can_read_or_write_the_cache(directory):
    check_code()
    assert stat.S_IMODE((directory / "compiled").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in files(directory))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"\0" * len(data),
        lambda data: data[:-200] + bytes([data[-200] ^ 1]) + data[-199:],
        lambda data: np.random.default_rng(5).bytes(500),
        lambda data: data + b"more",
    ],
    ids=["empty", "cut", "zeros", "one bit", "garbage", "longer"],
)
def test_a_damaged_entry_is_compiled_anew(damage, compilations, directory):
    check_code()
    (entry,) = files(directory)
    entry.write_bytes(damage(entry.read_bytes()))
    forget_process()
    check_code()
    assert len(compilations) == 2
    forget_process()
    check_code()
    assert len(compilations) == 2


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
    check_code()
    forget_process()
    monkeypatch.setattr(cache, "fingerprint", lambda *modules: "another version")
    check_code()
    assert len(compilations) == 2


NOT_KEPT = "compiled code is not kept, and each process compiles it anew, since the cache cannot be written: "
SOMEBODY = 12345


def test_a_directory_that_is_not_the_users_own_is_not_used(owned_by, compilations, directory):
    check_code()
    forget_process()
    owned_by(SOMEBODY, "stat")
    with pytest.warns(RuntimeWarning, match=f"{NOT_KEPT}It belongs to another user, or others may write to it: '{directory}"):
        check_code()
    assert len(compilations) == 2
    assert cache.entries() == 0


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_not_used(compilations, directory, mode):
    check_code()
    (directory / "compiled").chmod(mode)
    forget_process()
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        check_code()
    assert len(compilations) == 2


def test_an_entry_of_another_user_is_compiled_anew(monkeypatch, owned_by, compilations):
    check_code()
    forget_process()
    with monkeypatch.context():
        owned_by(SOMEBODY, "fstat")
        check_code()
    assert len(compilations) == 2


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602, 0o620])
def test_an_entry_that_others_may_write_to_is_compiled_anew(compilations, directory, mode):
    check_code()
    (entry,) = files(directory)
    entry.chmod(mode)
    forget_process()
    check_code()
    assert len(compilations) == 2
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    forget_process()
    check_code()
    assert len(compilations) == 2


def test_an_entry_that_is_a_link_is_not_followed(compilations, directory, tmp_path):
    check_code()
    (entry,) = files(directory)
    elsewhere = entry.rename(tmp_path / "elsewhere")
    content = elsewhere.read_bytes()
    entry.symlink_to(elsewhere)
    forget_process()
    check_code()
    assert len(compilations) == 2
    assert not entry.is_symlink()
    assert elsewhere.read_bytes() == content


def test_a_named_pipe_in_the_place_of_an_entry_is_not_waited_for(compilations, directory, stopwatch):
    check_code()
    (entry,) = files(directory)
    entry.unlink()
    os.mkfifo(entry)
    forget_process()
    check_code()
    assert len(compilations) == 2
    assert entry.is_file()


@pytest.mark.parametrize("writable", [0o000, 0o200])
def test_what_root_has_put_there_is_used(owned_by, monkeypatch, compilations, directory, writable):
    """Such as in an image: for all to read."""
    check_code()
    forget_process()
    (entry,) = files(directory)
    entry.chmod(0o444 | writable)
    (directory / "compiled").chmod(0o555 | writable)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    owned_by(0, "stat", "fstat")
    check_code()
    assert len(compilations) == 1


def test_without_a_directory_to_write_to_everything_works(monkeypatch, compilations, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match=rf"{NOT_KEPT}File exists: '{tmp_path}/file' \(PYPOPLAR_CACHE_DIR names"):
        check_code()
    forget_process()
    check_code()  # it is said once
    assert len(compilations) == 2
    assert (cache.entries(), cache.size()) == (0, 0)
    cache.clear()


# Users who cannot write to their own directory


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The temporary directory of a user whose own directory cannot be made."""
    monkeypatch.delenv("PYPOPLAR_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def private(temporary):
    return temporary / f"pypoplar-{os.geteuid()}"


def test_a_directory_under_the_temporary_one_takes_the_place_of_one_that_cannot_be_made(temporary, compilations, tmp_path):
    expected = (
        rf"compiled code is kept in '{private(temporary)}', since the cache cannot be written: Not a directory: "
        rf"'{tmp_path}/file/.*' \(PYPOPLAR_CACHE_DIR names another directory\)"
    )
    with pytest.warns(RuntimeWarning, match=expected):
        check_code()
    run_native(price(3), [{"out": 0}])  # it is said once
    forget_process()
    check_code()
    assert len(compilations) == 2
    assert cache.entries() == 2
    assert cache.places() == [tmp_path / "file" / ".cache" / "pypoplar", private(temporary)]
    assert stat.S_IMODE(private(temporary).stat().st_mode) == 0o700
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in private(temporary).iterdir())
    cache.clear()
    assert list(private(temporary).iterdir()) == []


def test_one_that_can_be_read_but_not_written_is_read(temporary, compilations, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    check_code()
    forget_process()
    written_whole = cache.written_whole

    def refuse(path, **options):
        if temporary not in path.parents:
            raise PermissionError(13, "Permission denied", str(path))
        return written_whole(path, **options)

    monkeypatch.setattr(cache, "written_whole", refuse)
    check_code()
    assert len(compilations) == 1
    with pytest.warns(RuntimeWarning, match="compiled code is kept in"):
        run_native(price(3), [{"out": 0}])
    assert (len(files(tmp_path / "home" / ".cache" / "pypoplar")), len(list(private(temporary).iterdir()))) == (1, 1)


def link_to_the_users_own(place, tmp_path):
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "own" / "mine.txt").write_text("keep")
    place.symlink_to(tmp_path / "own")


@pytest.mark.parametrize(
    "put",
    [
        lambda place, tmp_path: place.mkdir() or place.chmod(0o777),
        lambda place, tmp_path: place.write_text("a file"),
        lambda place, tmp_path: place.symlink_to("nowhere"),
        link_to_the_users_own,
    ],
    ids=["writable to all", "file", "dangling link", "link"],
)
def test_what_others_have_put_in_its_place_is_not_used(temporary, compilations, tmp_path, put):
    put(private(temporary), tmp_path)
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        check_code()
    forget_process()
    check_code()
    assert len(compilations) == 2
    cache.clear()
    assert [path.name for path in tmp_path.glob("own/*")] in ([], ["mine.txt"])


def test_a_directory_there_that_another_user_has_made_is_not_used(temporary, owned_by):
    private(temporary).mkdir(mode=0o755)
    owned_by(SOMEBODY, "lstat")
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        check_code()


def test_a_user_without_a_home_directory_gets_none_in_the_current_one(temporary, tmp_path, monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning, match="The user has no home directory"):
        assert cache.store("key", b"content")
    assert cache.load("key") == b"content"
    assert not (tmp_path / "~").exists()


def test_nothing_takes_the_place_of_a_directory_that_was_chosen(temporary, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        assert not cache.store("key", b"content")
    assert list(temporary.iterdir()) == []


def test_a_read_only_cache_is_read(monkeypatch, compilations, directory):
    check_code()
    forget_process()

    def refuse(*arguments, **options):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "written_whole", refuse)
    check_code()
    assert len(compilations) == 1
    run_native(price(1), [{"out": 0}])
    assert len(files(directory)) == 1


def test_clearing_deletes_the_entries_and_nothing_else(directory):
    check_code()
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
        os.utime(directory / "compiled" / cache._name(f"entry {i}"), (i, i))
    cache.store("last", b"y")
    assert cache.entries() == 7
    assert cache.load("entry 0") is None
    assert cache.load("entry 8") == b"x"


def test_the_default_directory_is_the_users(monkeypatch):
    monkeypatch.delenv("PYPOPLAR_CACHE_DIR")
    assert "pypoplar" in cache.location().name


def test_processes_and_threads_may_store_at_once(directory):
    script = """
from pypoplar.host_code import cache
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
