"""What a file of an executable unpacks to: declared sizes are within a limit, and no member gives more than it declares."""

import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from executable_damage import Opened, saved, zipped
from executable_programs import control

from pypoplar import Executable, FileLoadError, PoplarTypeError
from pypoplar.executable.executable_file import JSON_BYTES

MEGABYTE = 1 << 20


def refusal(content, **limit):
    """The text of the error with which a file is refused, and the most memory that Python had in use meanwhile."""
    tracemalloc.start()
    try:
        with pytest.raises(FileLoadError) as caught:
            Executable.load(io.BytesIO(content), **limit)
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def declaring(name, content, size):
    """An archive with one deflated member that declares the first `size` bytes of its content, or more than there are."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(content) + packed.flush()
    sizes = (zlib.crc32(content[:size]), len(data), size)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, *sizes, len(name), 0) + name + data
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 0, *sizes, len(name), 0, 0, 0, 0, 0, 0) + name
    return local + entry + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local), 0)


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return sum(member.file_size for member in archive.infolist())


def json_bytes(content):
    text = Opened(content).members()["executable.json"]
    return sum(size * text.count(mark) for mark, size in JSON_BYTES.items())


def test_what_declares_more_than_a_gibibyte_is_refused_before_anything_is_unpacked():
    content = declaring(b"executable.json", bytes(64 * MEGABYTE), (1 << 30) + 1)
    text, memory = refusal(content)
    expected = "the file: it unpacks to 1,073,741,825 bytes: expected at most 1,073,741,824"
    assert text == f"{expected}; for a file that you trust, raise unpacked_limit"
    assert memory < MEGABYTE


def test_the_limit_is_for_all_members_together_and_can_be_raised():
    content = saved(control())
    limit = max(unpacked(content), json_bytes(content))
    assert "unpacks to" in refusal(content, unpacked_limit=unpacked(content) - 1)[0]
    assert "takes up to" in refusal(content, unpacked_limit=limit - 1)[0]
    assert repr(Executable.load(io.BytesIO(content), unpacked_limit=limit)) == repr(control())
    assert repr(Executable.load(io.BytesIO(content), limit)) == repr(control())


@pytest.mark.parametrize("limit", ["1 GiB", 1e9, None])
def test_a_limit_is_a_number_of_bytes(limit):
    with pytest.raises(PoplarTypeError, match="unpacked_limit is a whole number of bytes, got"):
        Executable.load(io.BytesIO(saved(control())), unpacked_limit=limit)


def test_a_member_gives_no_more_than_it_declares():
    content = declaring(b"executable.json", b'{"format": "other"}' + b" " * 64 * MEGABYTE, 19)
    assert len(content) < MEGABYTE
    text, memory = refusal(content)
    assert "does not say that it is a pypoplar executable" in text
    assert memory < MEGABYTE


def test_a_member_that_gives_less_than_it_declares_is_refused():
    text, _ = refusal(declaring(b"executable.json", b'{"format": "other"}', 20))
    assert text == "the file: the member executable.json is damaged: it has 19 bytes, and declares 20"


@pytest.mark.parametrize("shape", [(1 << 50,), (1 << 20, 1 << 30), (-2, -(1 << 40)), (-8,)])
@pytest.mark.parametrize("dtype", ["<i8", "|V0", "<U0"])
def test_no_room_is_made_for_an_array_that_is_not_there(shape, dtype):
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"shape": shape, "fortran_order": False, "descr": dtype})
    text, memory = refusal(zipped({**Opened(saved(control())).members(), "program.npy": member.getvalue()}))
    assert "the member program.npy" in text
    assert memory < 2 * MEGABYTE


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_compression_which_have_no_bound_are_refused(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("executable.json", bytes(16 * MEGABYTE))
    text, memory = refusal(file.getvalue())
    assert text == "the file: the member executable.json is compressed in a way that no executable is"
    assert memory < MEGABYTE


@pytest.mark.parametrize("entry", ["[]", "[[]]", "[[[[[]]]]]", "{}", '{"":0}', '{"":{"":{"":{}}}}', '{"":[{"a":[]}]}'])
def test_json_that_takes_many_times_its_size_is_refused_before_it_is_read(entry):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("executable.json", f"[{','.join([entry] * (4 * MEGABYTE // len(entry)))}]")
    text, memory = refusal(file.getvalue(), unpacked_limit=32 * MEGABYTE)
    assert "the file: executable.json takes up to" in text
    assert memory < 16 * MEGABYTE


@pytest.mark.parametrize(
    "entry", ["[]", "[[[[[[]]]]]]", "{}", '{"":0}', '{"":{"":{"":{}}}}', '{"a":1,"b":2}', '"ab"', "1e9", "1000", "[1]"]
)
def test_json_takes_no_more_than_its_marks_say(entry):
    text = f"[{','.join([entry] * 20_000)}]".encode()
    tracemalloc.start()
    tree = json.loads(text)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert tree
    assert taken <= sum(size * text.count(mark) for mark, size in JSON_BYTES.items())
