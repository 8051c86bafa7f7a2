"""Files at the user's paths: only regular ones are read and replaced, and what is written is written whole or not at all."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from pypoplar.files import check_regular, written_whole


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, content, **options):
    with written_whole(path, **options) as part:
        part.write_bytes(content)


def test_the_file_appears_under_its_name_when_it_is_whole(tmp_path):
    place = tmp_path / "file"
    with written_whole(place) as part:
        part.write_bytes(b"half")
        assert not place.exists()
        assert part.parent == tmp_path
    assert place.read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, mask, mode):
    with umask(mask):
        write(tmp_path / "file", b"")
        write(tmp_path / "private", b"", mode=0o600)
    assert permissions(tmp_path / "file") == mode
    assert permissions(tmp_path / "private") == 0o600


def test_the_umask_of_the_process_is_not_touched(tmp_path, monkeypatch):
    def refuse(mask):
        raise AssertionError("the umask is every thread's")

    monkeypatch.setattr(os, "umask", refuse)
    write(tmp_path / "file", b"")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_a_file_that_is_replaced_hands_on_its_permissions(tmp_path, mode):
    place = tmp_path / "file"
    place.write_bytes(b"before")
    place.chmod(mode)
    with umask(0o022), written_whole(place) as part:
        assert permissions(part) == 0o600  # nobody reads what only some may
        part.write_bytes(b"after")
    assert permissions(place) == mode
    assert place.read_bytes() == b"after"


def test_a_block_that_raises_leaves_what_was_there(tmp_path):
    place = tmp_path / "file"
    place.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt), written_whole(place) as part:
        part.write_bytes(b"half")
        raise KeyboardInterrupt
    assert place.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [place]


def test_a_process_that_is_killed_leaves_what_was_there(tmp_path):
    place = tmp_path / "file"
    place.write_bytes(b"before")
    script = (
        "import os, signal, sys\nfrom pypoplar.files import written_whole\n"
        "with written_whole(sys.argv[1]) as part:\n    part.write_bytes(b'half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(place)]).returncode == -signal.SIGKILL
    assert place.read_bytes() == b"before"


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"before")
    for name, leads_to in (("link", "folder/file"), ("link to link", "link"), ("dangling", "folder/new")):
        (tmp_path / name).symlink_to(leads_to)
    write(tmp_path / "link to link", b"after")
    write(tmp_path / "dangling", b"new")
    assert (tmp_path / "link to link").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_bytes() == b"after"
    assert (tmp_path / "folder" / "new").read_bytes() == b"new"


def test_a_ring_of_links_is_refused(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(OSError, match="links") as caught:
        write(tmp_path / "one", b"")
    assert caught.value.errno == errno.ELOOP


def test_long_names_are_no_trouble(tmp_path):
    write(tmp_path / ("x" * 255), b"content")


def test_a_folder_that_is_not_there_is_named_and_so_is_a_file_in_its_place(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "missing" / "file", b"")
    assert caught.value.filename == str(tmp_path / "missing" / "file")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError) as caught:
        write(tmp_path / "file" / "file", b"")
    assert caught.value.filename == str(tmp_path / "file" / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError) as caught:
        write(tmp_path / "file", b"")
    tmp_path.chmod(0o700)
    assert caught.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_with_the_users_file(tmp_path):
    place = tmp_path / "file"
    with pytest.raises(OSError, match="No space left") as caught, written_whole(place):
        raise OSError(errno.ENOSPC, "No space left on device", "elsewhere")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(place))
    assert list(tmp_path.iterdir()) == []


def test_threads_that_write_one_file_leave_one_of_their_contents(tmp_path):
    place = tmp_path / "file"
    contents = [bytes([number]) * 100_000 for number in range(4)]
    threads = [threading.Thread(target=lambda content=content: [write(place, content) for _ in range(20)]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [place]


# What is no regular file


@pytest.fixture
def irregular(tmp_path, request, stopwatch):
    """Paths of files that are not regular."""
    place = tmp_path / "irregular"
    if request.param == "a named pipe":
        os.mkfifo(place)
    elif request.param == "a link to a named pipe":
        os.mkfifo(tmp_path / "pipe")
        place.symlink_to("pipe")
    elif request.param == "a socket":
        (tmp_path / "folder").mkdir()
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(place))  # the name of a socket is short
    elif request.param == "a directory":
        place.mkdir()
    else:
        return request.param
    return place


IRREGULAR = ["a named pipe", "a link to a named pipe", "a socket", "a directory", "/dev/null", "/dev/zero"]


@pytest.mark.parametrize("irregular", IRREGULAR, indirect=True)
def test_what_is_no_regular_file_is_neither_read_nor_replaced(irregular):
    kind = stat.S_IFMT(os.stat(irregular).st_mode)
    with pytest.raises(OSError, match=r"Is a (named pipe|socket|character device|directory)"):
        check_regular(irregular)
    with pytest.raises(OSError, match=r"Is a (named pipe|socket|character device|directory)"):
        write(irregular, b"content")
    assert stat.S_IFMT(os.stat(irregular).st_mode) == kind


def test_regular_files_are_fine_and_missing_ones_are_named(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert check_regular(tmp_path / "link").st_size == 7
    with pytest.raises(FileNotFoundError):
        check_regular(tmp_path / "gone")


@pytest.mark.parametrize("name", ["null \0 character", "lone \ud800 surrogate"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    for use in (check_regular, lambda place: write(place, b"")):
        with pytest.raises(OSError, match="No file has such a name"):
            use(tmp_path / name)
