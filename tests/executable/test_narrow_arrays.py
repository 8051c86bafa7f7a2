"""Files keep whole numbers in the smallest types that hold them, and give them back in their own."""

import io
import zipfile

import numpy as np
import pytest
from executable_damage import Opened, saved
from executable_programs import control
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pypoplar import Executable, FileLoadError
from pypoplar.executable import archive
from pypoplar.executable.exchange_account import MESSAGE
from pypoplar.executable.narrow_arrays import holds, narrowed, widened
from pypoplar.executable.verify.move_claims import COLUMNS

WHOLE = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def refusal(content, **limit):
    with pytest.raises(FileLoadError) as caught:
        Executable.load(io.BytesIO(content), **limit)
    return str(caught.value)


def stored_types(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name))).dtype for name in names}


@given(st.sampled_from(WHOLE).flatmap(lambda name: npst.arrays(name, st.integers(0, 4))))
def test_numbers_come_back_whatever_they_are(array):
    stored = narrowed(array)
    assert stored.dtype.itemsize <= array.dtype.itemsize
    assert holds(stored.dtype, array.dtype)
    back = widened(stored, array.dtype)
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


@pytest.mark.parametrize(("name", "stored"), [("u8", "u4"), ("i8", "i4"), ("u4", "u4"), ("i4", "i4")])
def test_types_with_and_without_a_sign_are_kept_by_themselves(name, stored):
    """One that has no sign is not read from one that has."""
    array = np.array([1 << 16], name)
    assert narrowed(array).dtype == stored
    assert holds(np.dtype(stored), array.dtype)


@given(npst.arrays(MESSAGE, st.integers(0, 4)))
def test_records_come_back_whatever_they_hold(array):
    stored = narrowed(array)
    assert stored.dtype.itemsize <= array.dtype.itemsize
    assert holds(stored.dtype, MESSAGE)
    assert np.array_equal(widened(stored, MESSAGE), array)


@pytest.mark.parametrize(
    ("stored", "declared"),
    [("i8", "u8"), ("u8", "i8"), ("i4", "u8"), ("i8", "i4"), ("f4", "i8"), ("?", "i8"), ("f4", "f8"), ("i4", "f8"), (">i4", "f4")],
)
def test_types_that_could_hold_other_numbers_stand_for_none(stored, declared):
    assert not holds(np.dtype(stored), np.dtype(declared))


def test_records_of_other_fields_stand_for_none():
    swapped = [("destination", "i4"), ("source", "i4"), ("bytes", "i8"), ("variable", "i4")]
    for fields in (swapped, swapped[:3], [*MESSAGE.descr, ("more", "i1")]):
        assert not holds(np.dtype(fields), MESSAGE)
    assert not holds(np.dtype("i8"), MESSAGE)
    assert not holds(MESSAGE, np.dtype("i8"))


def test_a_file_has_narrow_arrays_and_what_is_loaded_has_not():
    content = saved(control())
    types = stored_types(content)
    assert types["moves.tile"] == np.uint8
    assert types["exchanges.account.messages"].itemsize < MESSAGE.itemsize
    loaded = Executable.load(io.BytesIO(content))
    assert loaded.computes.active_tile.dtype == np.int64
    assert saved(loaded) == content


def test_columns_of_moves_are_of_32_bits_where_these_hold_them():
    executable = control()
    content = saved(executable)
    assert {getattr(executable.moves, name).dtype for name in COLUMNS} == {np.dtype(np.int32)}
    loaded = Executable.load(io.BytesIO(content))
    assert {getattr(loaded.moves, name).dtype for name in COLUMNS} == {np.dtype(np.int32)}
    opened = Opened(content)
    number = opened.executable().moves.count.tolist().index(1)
    opened.arrays = {name: array.astype(np.int32) if name == "moves.tile" else array for name, array in opened.arrays.items()}
    opened.arrays["moves.source_step"][number] = 1 << 40  # of one piece: it goes nowhere
    wide = Executable.load(io.BytesIO(opened.content()))
    assert wide.moves.source_step.dtype == np.int64
    assert wide.moves.source_step[number] == 1 << 40
    assert wide.moves.tile.dtype == np.int32


def test_wide_arrays_are_taken_too():
    content = saved(control())
    wide = Opened(content).content()
    assert stored_types(wide)["moves.tile"] == np.int64
    assert saved(Executable.load(io.BytesIO(wide))) == content


@pytest.mark.parametrize("dtype", [np.float32, np.uint64, bool])
def test_an_array_of_another_kind_is_named(dtype):
    opened = Opened(saved(control()))
    opened.arrays["moves.source"] = opened.arrays["moves.source"].astype(dtype)
    assert f"moves.source is an array of {np.dtype(dtype)}: expected int64" in refusal(opened.content())


def test_arrays_that_are_small_in_the_file_alone_are_refused():
    """A row of zeros of one byte each, which would take eight times its size."""
    opened = Opened(saved(control()))
    opened.arrays["moves.source"] = np.zeros(1 << 20, np.uint8)
    assert "the file: its arrays take" in refusal(opened.content(), unpacked_limit=1 << 22)


def test_arrays_that_several_threads_read_are_the_same_and_damage_is_told(monkeypatch):
    content = saved(control())
    monkeypatch.setattr(archive, "WORTH_THREADS", 0)
    monkeypatch.setattr(archive, "AT_ONCE", 16)  # many parts
    assert saved(Executable.load(io.BytesIO(content))) == content
    damaged = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as members:
        begin = members.getinfo("moves.tile.npy").header_offset
    place = content.index(b"NUMPY", begin) if b"NUMPY" in content[begin : begin + 200] else begin + 90
    damaged[place + 40] ^= 1
    assert "moves.tile" in refusal(bytes(damaged))


def test_a_member_that_ends_early_is_told():
    opened = Opened(saved(control()))
    members = {**opened.members()}
    told = io.BytesIO()
    with zipfile.ZipFile(told, "w") as archived:
        for name, member in members.items():
            archived.writestr(name, member)
    content = bytearray(told.getvalue())
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        info = read.getinfo("program.npy")
    at = content.index(b"program.npy", content.index(b"PK\x01\x02"))
    directory = at - 46
    assert content[directory : directory + 4] == b"PK\x01\x02"
    content[directory + 24 : directory + 28] = (info.file_size + 8).to_bytes(4, "little")  # what it says that it unpacks to
    assert "program.npy" in refusal(bytes(content))
