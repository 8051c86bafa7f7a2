"""Executables: saved and loaded they are what they were, and damaged files are refused."""

import contextlib
import copy
import functools
import io
import json
import os
import pickle
import stat
import zipfile

import attrs
import numpy as np
import pytest
from executable_damage import Opened, Worker, saved, zipped
from executable_programs import PROGRAMS, RUN, control, new_graph
from executable_runner import run
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    CodeletError,
    Engine,
    Executable,
    FileLoadError,
    PoplarTypeError,
    compileGraph,
)
from pypoplar.codelet.codelet import Codelet
from pypoplar.executable import executable_file
from pypoplar.executable.archive import opened
from pypoplar.executable.codec import LaterList
from pypoplar.executable.narrow_arrays import holds, widened
from pypoplar.program import Call, Copy, Execute, Repeat, Sequence


@functools.cache
def saved_control():
    return saved(control())


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    made = Worker(tmp_path_factory.mktemp("executables"))
    yield made
    made.close()


def load(content):
    return Executable.load(io.BytesIO(content))


def refusal(content):
    """The text of the error with which a file is refused."""
    with pytest.raises(FileLoadError) as caught:
        load(content)
    return str(caught.value)


def refusal_of_engine(content):
    """The text of the error with which an engine refuses a file that has been loaded."""
    executable = load(content)
    with pytest.raises(FileLoadError) as caught:
        Engine(executable)
    return str(caught.value)


def assert_same(one, other, where="executable"):
    """Equality in every field, with types, dtypes and shapes; records stay as narrow as the file has them."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype or (one.dtype.names is not None and holds(other.dtype, one.dtype)), where
        other = widened(other, one.dtype)
        np.testing.assert_array_equal(one, other, strict=True, err_msg=where)
    elif attrs.has(type(one)) and where.count(".") < 3:
        for field in attrs.fields(type(one)):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for name in one:
            assert_same(one[name], other[name], f"{where}[{name!r}]")
    else:
        assert one == other, where


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_field_comes_back(name):
    original = PROGRAMS[name]()
    assert_same(original, load(saved(original)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_loaded_and_saved_again_is_the_same_file(name):
    content = saved(PROGRAMS[name]())
    assert saved(load(content)) == content


@pytest.mark.parametrize("mode", ["native", "parallel", "interpret"])
@pytest.mark.parametrize("name", RUN)
def test_a_loaded_one_runs_the_same_in_this_and_in_another_process(name, mode, worker):
    original = PROGRAMS[name]()
    expected = json.loads(json.dumps(run(original, mode)))
    content = saved(original)
    assert json.loads(json.dumps(run(load(content), mode))) == expected
    assert worker.ask(content, mode) == {"ran": expected}


def test_programs_of_other_functions_need_the_streams_of_theirs():
    graph = new_graph()
    values = graph.addVariable(FLOAT, [4], "values")
    graph.setTileMapping(values, 0)
    inner = graph.addFunction(Copy(graph.addHostToDeviceFIFO("values", FLOAT, 4), values))
    outer = graph.addFunction(Call(inner))
    executable = compileGraph(graph, [Call(outer), Call(outer)])
    assert executable.entry_streams == ((0,), (0,))
    load(saved(executable))


def test_paths_and_file_objects_are_taken(tmp_path):
    original = control()
    content = saved(original)
    original.save(tmp_path / "path.npz")
    original.save(str(tmp_path / "no suffix"))
    with (tmp_path / "file").open("wb") as file:
        original.save(file)
    Engine(original).serializeExecutable(tmp_path / "engine")
    for name in ("path.npz", "no suffix", "file", "engine"):
        assert (tmp_path / name).read_bytes() == content
    assert_same(original, Executable.load(str(tmp_path / "no suffix")))
    assert_same(original, Executable.load(tmp_path / "path.npz"))
    with (tmp_path / "file").open("rb") as file:
        assert_same(original, Executable.load(file))


@pytest.mark.parametrize("place", [3, None, b"bytes", ["list"]])
def test_what_is_no_place_for_a_file_is_refused(place):
    with pytest.raises(PoplarTypeError, match=f"expected a path or a binary file to write, got {type(place).__name__}"):
        control().save(place)
    with pytest.raises(PoplarTypeError, match=f"expected a path or a binary file to read, got {type(place).__name__}"):
        Executable.load(place)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_and_streams_hold_what_files_do(name):
    original = PROGRAMS[name]()
    content = original.serialize()
    assert content == saved(original)
    for source in (content, bytearray(content), memoryview(content), io.BytesIO(content)):
        assert_same(original, Executable.deserialize(source))
    stream = io.BytesIO()
    assert original.serialize(stream) is None
    assert_same(original, Executable.deserialize(stream))  # from its begin, though it stands at its end


def test_an_executable_may_stand_behind_something_else_if_its_reader_does():
    stream = io.BytesIO()
    stream.write(b"head")
    control().serialize(stream)
    with pytest.raises(FileLoadError, match="the file: there is something else before the executable, which begins at byte 4"):
        Executable.deserialize(stream)
    stream.seek(4)
    assert_same(control(), Executable.deserialize(stream))


def test_of_two_executables_in_one_stream_none_is_taken_for_the_other():
    stream = io.BytesIO()
    control().serialize(stream)
    begin = stream.tell()
    PROGRAMS["nothing"]().serialize(stream)
    for position in (0, begin // 2, stream.tell()):
        stream.seek(position)
        with pytest.raises(FileLoadError, match=f"something else before the executable, which begins at byte {begin:,}"):
            Executable.load(stream)
    stream.seek(begin)
    assert_same(PROGRAMS["nothing"](), Executable.load(stream))


def test_what_is_no_place_for_bytes_is_refused(tmp_path):
    for place in ("file", tmp_path):
        with pytest.raises(PoplarTypeError, match=r"binary file to write, got a path: Executable\.save takes one"):
            control().serialize(place)
        with pytest.raises(PoplarTypeError, match=r"bytes or a binary file to read, got a path: Executable\.load takes one"):
            Executable.deserialize(place)
    for save in (control().serialize, control().save):
        with pytest.raises(PoplarTypeError, match="to write, got a text file: open it with the mode 'wb'"):
            save(io.StringIO())
    for read in (Executable.deserialize, Executable.load):
        with pytest.raises(PoplarTypeError, match="to read, got a text file: open it with the mode 'rb'"):
            read(io.StringIO())
    with pytest.raises(PoplarTypeError, match="expected bytes or a binary file to read, got int"):
        Executable.deserialize(3)


@pytest.mark.parametrize("content", [b"", b"PK", saved_control()[:-1]])
def test_damaged_bytes_are_refused(content):
    with pytest.raises(FileLoadError, match="the file: not a saved executable, or damaged"):
        Executable.deserialize(content)
    with pytest.raises(FileLoadError, match="unpacks to"):
        Executable.deserialize(saved_control(), unpacked_limit=1000)


def test_numpy_reads_the_arrays(tmp_path):
    original = control()
    original.save(tmp_path / "executable.npz")
    with np.load(tmp_path / "executable.npz", allow_pickle=False) as file:
        assert file["program"].tolist() == original.program.ravel().tolist()
        assert json.loads(file["executable.json"])["format"] == "pypoplar executable"


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    place = tmp_path / "executable.npz"
    control().save(place)
    content = place.read_bytes()
    unsaveable = attrs.evolve(PROGRAMS["vertices"](), services=({"kind": "print", "title": object()},))
    with pytest.raises(TypeError, match="cannot be part of a saved executable"):
        unsaveable.save(place)
    assert place.read_bytes() == content
    assert list(tmp_path.iterdir()) == [place]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    place = tmp_path / "missing" / "executable.npz"
    with pytest.raises(FileNotFoundError) as caught:
        control().save(place)
    assert caught.value.filename == str(place)


def test_what_steps_share_is_kept_once():
    graph = new_graph()
    one = Sequence(Execute(graph.addComputeSet("nothing")))
    once = len(saved(compileGraph(graph, one)))
    often = compileGraph(graph, Sequence(*[Repeat(2, one)] * 200))
    assert len(often.exchanges) == 400
    opened = Opened(saved(often))
    assert opened.arrays["exchanges.account.bytes_sent"].size <= 2 * 16
    assert len(opened.head["texts"]) == 3 + 4  # four of the program tree
    assert len(saved(often)) < 2 * once
    loaded = load(saved(often))
    assert loaded.exchanges[2].account.bytes_sent is loaded.exchanges[0].account.bytes_sent
    assert loaded.exchanges[2].variables is loaded.variable_names


# Files that are not ours


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileLoadError, match=r"gone\.npz: cannot be read: No such file"):
        Executable.load(tmp_path / "gone.npz")
    with pytest.raises(FileLoadError, match="cannot be read: Is a directory"):
        Executable.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK", b"print('hello')", pickle.dumps([1, 2])])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(FileLoadError, match="other: not a saved executable, or damaged: File is not a zip file"):
        Executable.load(tmp_path / "other")


def test_an_archive_of_something_else_is_refused():
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    assert refusal(file.getvalue()) == "the file: not a saved executable: it has no executable.json"
    for text in (b"[]", b"{}", b'{"format": "other"}'):
        assert "does not say that it is a pypoplar executable" in refusal(zipped({"executable.json": text}))
    for text in (b"", b"{", b"\xff", b"[" * 100_000):
        assert "executable.json is not JSON" in refusal(zipped({"executable.json": text}))


def test_another_format_version_is_named():
    opened = Opened(saved_control())
    opened.head.update(version=99, pypoplar="9.1")
    assert "of format version 99, written by pypoplar '9.1': this pypoplar" in refusal(opened.content())


def test_truncated_files_are_refused():
    content = saved_control()
    for length in {*range(0, len(content), 37), len(content) - 1, len(content) - 22}:
        refusal(content[:length])


def test_flipped_bytes_are_seen_or_change_nothing():
    original = control()
    content = saved(original)
    for place in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        try:
            loaded = load(bytes(damaged))
        except FileLoadError:
            continue
        assert_same(original, loaded)


def test_large_arrays_that_compression_hardly_makes_smaller_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(executable_file, "LARGE", 1 << 12)
    rng = np.random.default_rng(1)
    drawn, runs = rng.integers(0, 256, 1 << 13).astype(np.uint8), np.repeat(np.arange(8), 1 << 10)
    assert not executable_file._shrinks(drawn)
    assert executable_file._shrinks(runs)
    assert executable_file._shrinks(drawn[:100]), "small ones are not looked at"
    executable = attrs.evolve(control(), image=attrs.evolve(control().image, data=drawn))
    with zipfile.ZipFile(io.BytesIO(saved(executable))) as archive:
        kinds = {info.filename: info.compress_type for info in archive.infolist()}
        stored = np.lib.format.read_array(io.BytesIO(archive.read("image.data.npy")))
    assert [name for name, kind in kinds.items() if kind == zipfile.ZIP_STORED] == ["image.data.npy"]
    assert np.array_equal(stored, drawn)


def exchanging():
    """A program with exchanges whose messages are stored compressed, and its file."""
    name = next(name for name in PROGRAMS if len(PROGRAMS[name]().exchanges))
    return PROGRAMS[name](), saved(PROGRAMS[name]())


def test_exchanges_of_what_was_verified_are_unpacked_when_they_are_asked_for():
    executable, content = exchanging()
    again = executable_file.deserialize(content, 1 << 30, verified=True)
    assert isinstance(again.exchanges, LaterList)
    assert len(again.exchanges) == len(executable.exchanges)
    assert again.exchanges[0].messages.tolist() == executable.exchanges[0].messages.tolist()
    assert repr(again.exchanges) == repr(list(executable.exchanges))
    assert again.exchanges[:1] == [again.exchanges[0]]
    assert_same(executable, attrs.evolve(again, exchanges=list(again.exchanges)))
    assert saved(again) == content
    assert type(Executable.load(io.BytesIO(content)).exchanges) is list


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_arrays_that_are_held_are_compared_with_their_checksums(method):
    numbers = np.arange(5000)
    file, member = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(member, numbers)
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("numbers.npy", member.getvalue())
    with opened(file, 1 << 20) as archive:
        held = archive.held(archive.array("numbers.npy"))
    content, array = held._content, np.empty(5000, np.int64)
    held.read_into(array)
    assert np.array_equal(array, numbers)
    for damaged in (content[:-9], content + content, b"", *(flipped(content, place) for place in range(0, len(content), 97))):
        with pytest.raises(FileLoadError, match=r"^the member numbers.npy is damaged: "):
            attrs.evolve(held, content=damaged).read_into(array)


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :]


def test_a_member_that_is_cut_short_is_named():
    members = Opened(saved_control()).members()
    members["program.npy"] = members["program.npy"][:-8]
    assert "the member program.npy is not an array of numbers" in refusal(zipped(members))
    members["program.npy"] = members["moves.tile.npy"] + b"more"
    assert "the member program.npy goes on after its array" in refusal(zipped(members))


def test_missing_and_surplus_members_are_named():
    opened = Opened(saved_control())
    del opened.arrays["moves.tile"]
    assert "the array moves.tile of moves.tile is missing" in refusal(opened.content())
    opened = Opened(saved_control())
    opened.arrays["other"] = np.zeros(3)
    assert "surplus arrays: other" in refusal(opened.content())
    assert "surplus member other.txt" in refusal(zipped({**Opened(saved_control()).members(), "other.txt": b"text"}))


def test_missing_and_surplus_fields_are_named():
    opened = Opened(saved_control())
    del opened.tree["steps"][1]["depth"]
    assert refusal(opened.content()) == "the file: steps[1] lacks depth"
    opened = Opened(saved_control())
    opened.tree["colour"] = "red"
    assert refusal(opened.content()) == "the file: the executable has surplus colour"
    opened = Opened(saved_control())
    del opened.tree["target"]["num_ipus"]
    assert "target is damaged" in refusal(opened.content())


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("counters",), "1", "counters is '1': expected a whole number"),
        (("counters",), True, "counters is True: expected a whole number"),
        (("counters",), 1 << 70, "counters does not fit in 64 bits"),
        (("floating_point_checks",), 1, "floating_point_checks is 1: expected true or false"),
        (("steps", 1, "name"), None, "steps[1].name is None: expected a text"),
        (("steps",), {}, "steps is {}: expected a list"),
        (("steps", 2), [], "steps[2] is []: expected named values"),
        (("writes",), [], "writes is []: expected named values"),
        (("compute_names",), 99, "compute_names is 99: expected one of the lists of texts"),
        (("vertex_names", "locations", 0), ["file", 1], "vertex_names.locations[0] has 2 entries: expected 3"),
        (("program",), 5, "program is 5: expected an array"),
        (("program",), ["program", -5, 4, 5], "program is ['program', -5, 4, 5]: expected an array"),
        (("program",), ["program", 0, 400, 5], "program ends at 2000, but the array program has"),
        (("touches",), 0, "touches is 0: expected named values"),
        (("options",), {"pypoplar.colour": "red"}, "options is damaged: there is no engine option 'pypoplar.colour'"),
        (("target", "num_ipus"), 0, "target is damaged: this is not a saved target: num_ipus is 0"),
        (("target", "timing"), "hardwear", "target is damaged: this is not a saved target: no timing is called 'hardwear'"),
        (("target", "syncs_without_exchange"), 1, "this is not a saved target: syncs_without_exchange is 1, expected a bool"),
        (("target", "compute_set_start_cycles"), 10**9, "this is not a saved target: compute_set_start_cycles must be at most"),
    ],
)
def test_a_wrong_kind_of_value_is_named(path, value, text):
    opened = Opened(saved_control())
    place = opened.tree
    for one in path[:-1]:
        place = place[one]
    place[path[-1]] = value
    assert text in refusal(opened.content())


def test_a_wrong_dtype_or_rank_is_named():
    opened = Opened(saved_control())
    opened.arrays["moves.source"] = opened.arrays["moves.source"].astype(np.float32)
    assert refusal(opened.content()) == "the file: moves.source is an array of float32: expected int64"
    opened = Opened(saved_control())
    opened.arrays["moves.source"] = opened.arrays["moves.source"].reshape(1, -1)
    assert refusal(opened.content()) == "the file: the array of the member moves.source.npy has rank 2: expected 1"


def test_members_that_are_there_twice_are_refused():
    content = io.BytesIO(saved_control())
    with zipfile.ZipFile(content, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("program.npy", archive.read("program.npy"))
    assert refusal(content.getvalue()) == "the file: a member is there twice"


# Files that would act


class Acts:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return open, (str(self.place), "w")


def test_pickled_objects_are_refused_and_not_restored(tmp_path):
    place = tmp_path / "acted"
    members = Opened(saved_control()).members()
    member = io.BytesIO()
    np.lib.format.write_array(member, np.array([Acts(place)], object), allow_pickle=True)
    members["program.npy"] = member.getvalue()
    assert "Object arrays cannot be loaded when allow_pickle=False" in refusal(zipped(members))
    members["program.npy"] = pickle.dumps(Acts(place))
    assert "the member program.npy is not an array of numbers" in refusal(zipped(members))
    assert not place.exists()


@pytest.mark.parametrize(
    "text",
    [
        "def compute(self):\n    open({place!r}, 'w')\n",
        "def compute(self):\n    self.n = __import__('os').system('touch ' + {place!r})\n",
        "def compute(self):\n    import os\n    os.mkdir({place!r})\n",
        "def compute(self):\n    exec('open({place!r}, \"w\")')\n",
        "def compute(self, x=open({place!r}, 'w')):\n    self.n = 1\n",
        "def compute(self):\n    class Other(open({place!r}, 'w').__class__): pass\n",
        "def compute(self):\n    self.n = (lambda: open({place!r}, 'w'))()\n",
        "def compute(self):\n    self.n = [open({place!r}, 'w') for i in range(1)][0]\n",
        "def compute(self):\n    with open({place!r}, 'w') as f: self.n = 1\n",
        "def compute(self):\n    self.n = int(f'{{open({place!r}, \"w\")}}')\n",
        "def compute(self):\n    self.__class__ = open({place!r}, 'w')\n",
        "def compute(self):\n    print(open({place!r}, 'w'))\n",
        "open({place!r}, 'w')\ndef compute(self):\n    self.n = 1\n",
        "def compute(self):\n    self.n = 1\nopen({place!r}, 'w')\n",
        "def compute(self):\n    self.n = 1 +\n",
        "def compute(self):\n    self.n = " + "(" * 5000 + "\n",
        "def compute(self):\n    self.n = " + "-" * 50_000 + "1\n",
        "",
        "\0",
    ],
)
def test_text_that_is_no_device_code_is_refused_and_not_executed(tmp_path, text):
    place = tmp_path / "acted"
    assert "codelets[0], CountDown, cannot be translated: " in refusal_of_engine(with_codelet_text(text, place))
    assert not place.exists()


def with_codelet_text(text, place):
    """A file whose codelet has another text."""
    opened = Opened(saved_control())
    opened.tree["codelets"][0]["source"]["functions"][0]["text"] = text.replace("{place!r}", repr(str(place)))
    return opened.content()


@pytest.mark.parametrize(
    "text",
    [
        "def compute(self: open({place!r}, 'w')) -> open({place!r}, 'w'):\n    self.n = 0\n    self.more = False\n",
        "@open({place!r}, 'w').write\ndef compute(self):\n    self.n = 0\n    self.more = False\n",
    ],
)
def test_what_stands_around_device_code_is_passed_over(tmp_path, text, mode):
    place = tmp_path / "acted"
    run(load(with_codelet_text(text, place)), mode)
    assert not place.exists()


@pytest.mark.parametrize(
    "meaning",
    [
        ["builtin", "open"],
        ["math", "__import__"],
        ["ipu", "__builtins__"],
        ["foreign", "open"],
        ["missing", "open"],
        ["helper", 0],
        ["type", "FLOAT"],
    ],
)
def test_names_of_a_codelet_lead_to_nothing_but_device_code(tmp_path, meaning):
    place = tmp_path / "acted"
    opened = Opened(saved_control())
    function = opened.tree["codelets"][0]["source"]["functions"][0]
    function["text"] = f"def compute(self):\n    self.n = call({str(place)!r}, 'w')\n"
    function["names"]["call"] = meaning
    assert "codelets[0], CountDown, cannot be translated: " in refusal_of_engine(opened.content())
    assert not place.exists()


# Paths of other things than files


@pytest.fixture(params=["a named pipe", "/dev/null", "/dev/zero"])
def irregular(request, tmp_path, stopwatch):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    return place if request.param == "a named pipe" else request.param


def test_an_executable_is_not_saved_onto_what_is_no_regular_file(irregular):
    kind = stat.S_IFMT(os.stat(irregular).st_mode)
    for save in (control().save, Engine(control()).serializeExecutable):
        with pytest.raises(OSError, match=rf"Is a (named pipe|character device), not a regular file: '{irregular}'"):
            save(irregular)
    assert stat.S_IFMT(os.stat(irregular).st_mode) == kind


def test_an_executable_is_not_read_from_what_is_no_regular_file(irregular):
    text = rf"{irregular}: cannot be read: Is a (named pipe|character device), not a regular file"
    with pytest.raises(FileLoadError, match=text):
        Executable.load(irregular)


def test_a_link_to_an_executable_is_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("executable.npz")
    control().save(link)
    assert link.is_symlink()
    assert_same(control(), Executable.load(link))
    assert_same(control(), Executable.load(tmp_path / "executable.npz"))


def test_a_type_that_is_not_there_is_refused_when_the_file_is_loaded():
    opened = Opened(saved_control())
    opened.tree["codelets"][0]["source"]["functions"][0]["names"]["call"] = ["type", "eval"]
    assert refusal(opened.content()) == "the file: codelets[0] is damaged: damaged source of a codelet: ValueError: no type 'eval'"


# Whatever a source says, the file is refused, or the engine refuses it: there is no other kind of error

SORTS = ["constant", "helper", "method", "math", "ipu", "builtin", "type", "foreign", "missing"]
ODD = [
    None,
    True,
    "",
    "FLOAT",
    "BYTE",
    "range",
    "exp",
    "self",
    "x",
    0,
    1,
    -1,
    1.5,
    1 << 70,
    {"float": "nan"},
    {"float": "z"},
    [],
    {},
]
SNIPPETS = ["", "self", "(", ")", "x", "1", "\n", "**", "[0]", ".x", ":", " = ", " if ", "'a'", "f''", "...", "None", "True", "\0"]


def sources():
    """The codelets of all programs, as files have them."""
    return [codelet.to_json() for program in PROGRAMS.values() for codelet in program().codelets]


def places_of(tree, path=()):
    """The paths of all that a tree holds."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places_of(entry, (*path, key))


@st.composite
def damaged_sources(draw):
    """A codelet with up to three things wrong in it."""
    tree = json.loads(json.dumps(draw(st.sampled_from(sources()))))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([place for place in places_of(tree) if len(place) > 1]))
        holder = tree
        for key in path:
            holder = holder[key]
        held = holder[last]
        if isinstance(held, str) and len(held) > 20:
            begin = draw(st.integers(0, len(held) - 1))
            holder[last] = held[:begin] + draw(st.sampled_from(SNIPPETS)) + held[begin + draw(st.integers(0, 8)) :]
        elif draw(st.booleans()):
            holder[last] = [draw(st.sampled_from(SORTS)), copy.deepcopy(draw(st.sampled_from(ODD)))]
        elif draw(st.booleans()):
            holder[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
        else:
            del holder[last]
    return tree


@given(damaged_sources())
@examples(400)
def test_a_damaged_source_is_refused_when_it_is_read_or_translated_or_means_something(tree):
    with contextlib.suppress(FileLoadError, CodeletError):
        _ = Codelet.from_json(tree).typed


@pytest.mark.parametrize("part", ["target", "options"])
@given(st.data())
def test_a_damaged_target_or_option_is_refused_or_means_something(part, data):
    opened = Opened(saved_control())
    path = data.draw(st.sampled_from([place for place in places_of({part: opened.tree[part]}) if len(place) > 1] or [(part,)]))
    holder = opened.tree
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    with contextlib.suppress(FileLoadError):
        load(opened.content())
