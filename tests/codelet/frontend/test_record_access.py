"""Records in device code: what is read and written of them, in both engines, what they cost, and what is refused."""

import numpy as np
import pytest
from both_forms import compare_forms
from codelet_rig import codelet_of, interpret, lines, module_from, priced_codelet, run, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from native_rig import run_native

from pypoplar.codelet.ir.span_roots import stored_fields
from pypoplar.errors import CodeletError
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.types import SUPPORTED

PRELUDE = """
from pypoplar import Array, Record

TAPS = (1, 2)

class Point(Record):
    x: HALF
    y: FLOAT

class Ray(Record):
    kind: CHAR
    origin: Array[FLOAT, 3]
    ends: Array[Point, 2]
    centre: Point
    hit: INT
    far: BOOL
    small: SHORT

def lift(ray, by):
    ray.origin[1] += by
    return ray.centre

def moved(ray, by):
    ray = ray
    ray.hit += by
    return ray.hit

def last(rays):
    return rays[len(rays) - 1]

def sums(values):
    t = 0.0
    for value in values:
        t += value
    return t
"""
FIELDS = """
rays: InOut[Vector[Ray]]
given: Input[Vector[Ray]]
bytes: InOut[Vector[UNSIGNED_CHAR]]
rows: InOut[VectorList[CHAR]]
out: InOut[Vector[FLOAT]]
n: INT
Ray = Ray
"""
RAY = module_from("from pypoplar import *\n" + PRELUDE)["Ray"].dtype
SIZE = RAY.itemsize


def rays(count=3):
    array = np.zeros(count, RAY)
    array["kind"] = np.arange(count) - 1
    array["origin"] = np.arange(3 * count).reshape(count, 3)
    array["ends"]["x"] = 0.5
    array["ends"]["y"] = 10 + np.arange(2 * count).reshape(count, 2)
    array["hit"] = 100 + np.arange(count)
    return array


def ran(body, **values):
    given = {"rays": rays(), "given": rays(), "bytes": rays(2), "out": np.zeros(3), "n": 1, "rows": [rays(1), rays(2)]}
    settings = {key: values.pop(key) for key in list(values) if key not in given}
    given |= values
    for name in ("rays", "given", "bytes"):
        given[name] = np.ascontiguousarray(given[name]).view(np.uint8)
    given["rows"] = [np.ascontiguousarray(row).view(np.int8) for row in given["rows"]]
    result = run(vertex(body, fields=FIELDS, prelude=PRELUDE), **given, **settings)
    result.rays = result.fields["rays"].view(RAY)
    return result


PROGRAMS = [  # body, what it does to NumPy's records `a` and to `out`
    ("self.out[0] = self.rays[1].origin[2] + self.rays[self.n].kind", "out[0] = 5"),
    ("self.rays[2].hit = 7\nself.rays[0].hit += 1", "a['hit'] = [101, 101, 7]"),
    ("for ray in self.rays:\n    ray.far = ray.hit > 100", "a['far'] = [0, 1, 1]"),
    ("for i in range(len(self.rays)):\n    self.rays[i].kind = i + 127", "a['kind'] = [127, -128, -127]"),
    (
        "ray = self.rays[1]\nray.ends[1].x = ray.ends[0].y\nray.centre.y = 2.5",
        "a['ends'][1, 1]['x'] = 12; a['centre'][1]['y'] = 2.5",
    ),
    ("self.rays[1].small = self.rays[0].hit - 70000\nself.out[1] = self.rays[1].small", "a['small'][1] = out[1] = -4364"),
    ("self.out[0] = lift(self.rays[1], 2.0).y + sums(self.rays[1].origin)", "a['origin'][1, 1] = 6; out[0] = 14"),
    ("self.out[0] = moved(self.rays[2], 5) + last(self.rays[0:2]).hit", "a['hit'][2] = 107; out[0] = 208"),
    ("part = self.rays[1:]\npart[0].hit = len(part)\nself.out[2] = len(part[1].ends)", "a['hit'][1] = 2; out[2] = 2"),
    (
        "ray = self.rays[0]\nfor i in range(2):\n    ray = self.rays[i + 1]\n    ray.hit = i\nself.out[0] = ray.origin[0]",
        "a['hit'][1:] = [0, 1]; out[0] = 6",
    ),
    ("o = self.rays[2].origin[1:]\no[1] = 9.0\nself.out[0] = o[0] + len(o)", "a['origin'][2, 2] = 9; out[0] = 9"),
    ("a, b = self.rays[0], self.rays[2]\na.hit, b.hit = b.hit, a.hit", "a['hit'] = [102, 101, 100]"),
    ("view = ipu.view(self.bytes, Ray)\nself.out[0] = view[1].hit + len(view)", "out[0] = 103"),
    (f"view = ipu.view(self.bytes[{SIZE} :], self.Ray)\nself.out[0] = view[0].ends[1].y", "out[0] = 13"),
    ("for row in self.rows:\n    for ray in ipu.view(row, Ray):\n        self.out[0] += ray.hit", "out[0] = 301"),
    (
        f"b = ipu.array(UNSIGNED_CHAR, {SIZE})\nray = ipu.view(b, Ray)[0]\nray.hit = 3\nray.hit += 1\nself.out[0] = ray.hit",
        "out[0] = 4",
    ),
    ("self.out[0] = self.given[2].hit if self.n > 0 else self.rays[5].hit", "out[0] = 102"),
    ("for end in self.rays[1].ends:\n    end.y = 0.0", "a['ends'][1]['y'] = 0"),
    ("self.out[0] = 1 + len(ipu.view(self.bytes[0:0], Ray))", "out[0] = 1"),
    ("s = Ray.dtype.itemsize\nself.out[0] = ipu.view(self.bytes[s : 2 * s], Ray)[0].hit", "out[0] = 101"),
]


@pytest.mark.parametrize(("body", "meaning"), PROGRAMS, ids=[body for body, _ in PROGRAMS])
def test_programs_do_what_numpy_does(body, meaning):
    result = ran(body)
    expected = {"a": rays(), "out": np.zeros(3, np.float32)}
    exec(meaning, expected)
    assert result.fault is None
    np.testing.assert_array_equal(result.rays, expected["a"])
    np.testing.assert_array_equal(result.fields["out"], expected["out"])


FAULTS = [  # body, code, line of the body, value, bound
    ("self.out[0] = self.rays[3].kind", FaultCode.INDEX, 1, 3, 3),
    ("i = -1\nself.rays[i * self.n].hit = 2", FaultCode.INDEX, 2, -1, 3),
    ("self.rays[1].origin[self.n + 2] = 2.0", FaultCode.INDEX, 1, 3, 3),
    ("self.rays[1].ends[self.n + 1].x = 2.0", FaultCode.INDEX, 1, 2, 2),
    ("for i in range(4):\n    self.rays[i].hit = i", FaultCode.INDEX, 2, 3, 3),
    ("p = self.rays[1:4]", FaultCode.SLICE_BOUNDS, 1, 4, 3),
    ("p = self.rays[1:3]\np[2].hit = 3", FaultCode.INDEX, 2, 2, 2),
    ("v = ipu.view(self.bytes[1:], Ray)", FaultCode.VIEW_ALIGNMENT, 1, 1, 4),
    ("v = ipu.view(self.bytes[2:6], Ray)", FaultCode.VIEW_ALIGNMENT, 1, 2, 4),
    ("v = ipu.view(self.bytes[4:], Ray)", FaultCode.VIEW_SIZE, 1, 2 * SIZE - 4, SIZE),
    (f"v = ipu.view(self.bytes[{SIZE}:], Ray)\nv[self.n].hit = 3", FaultCode.INDEX, 2, 1, 1),
    ("v = ipu.view(self.bytes[0:0], Ray)\nv[0].hit = 3", FaultCode.INDEX, 2, 0, 0),
    ("self.out[0] = self.rays[0].hit // self.rays[self.n].kind", FaultCode.ZERO_DIVISION, 1, 0, 0),
]


@pytest.mark.parametrize(("body", "code", "line", "value", "bound"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_indices_of_records_and_arrays_and_views_are_checked(body, code, line, value, bound):
    result = ran(body)
    first = codelet_of(vertex(body, fields=FIELDS, prelude=PRELUDE)).source.functions[0].listing.first_line
    assert result.fault == (code, first + line, value, bound)


TOUCHES = [  # body, bytes read, bytes written
    ("self.out[0] = self.rays[1].origin[2]", [SIZE + RAY.fields["origin"][1] + byte for byte in range(8, 12)], []),
    ("self.rays[2].small = 3", [], [2 * SIZE + RAY.fields["small"][1] + byte for byte in range(2)]),
    ("self.rays[0].far = self.rays[0].kind > 0", [0], [RAY.fields["far"][1]]),
    ("p = self.rays[1:][1].ends[0:1]\np[0].y = 1.0", [], [2 * SIZE + RAY.fields["ends"][1] + byte for byte in range(4, 8)]),
]


@pytest.mark.parametrize(("body", "read", "written"), TOUCHES, ids=[body for body, _, _ in TOUCHES])
def test_touches_are_recorded_by_bytes(body, read, written):
    ran(body)  # results agree

    cls = vertex(body, fields=FIELDS, prelude=PRELUDE)
    values = {"rays": rays().view(np.uint8), "given": rays().view(np.uint8), "bytes": rays().view(np.uint8)}
    values |= {"rows": [rays(1).view(np.int8)], "out": np.zeros(3, np.float32), "n": 1}
    marks = interpret(cls, touches=True, **values).touched[0, "rays"]
    assert ([i for i, mark in enumerate(marks) if mark & 1], [i for i, mark in enumerate(marks) if mark & 2]) == (read, written)
    assert run_native(priced_codelet(cls), [values], record_touches=True).touched[0, "rays"] == marks


def test_unwritten_numbers_of_records_are_judged_by_their_bytes():
    array = rays()
    array["origin"][1, 0] = np.uint32(0xFFFFFFFF).view(np.float32)
    array["hit"][1] = -1
    body = "self.out[0] = self.rays[1].hit\nself.out[0] = self.rays[1].origin[0]"
    assert ran(body, rays=array).fault is None
    assert ran(body, rays=array, uninitialised_is_fault=True).fault[0::2] == (FaultCode.UNINITIALISED, 0)


COSTS = [  # body, slots beside entry, exit and those of the rest
    ("self.rays[0].hit = 1", 1),
    ("self.rays[self.n].hit = 1", 1 + 1 + 2),  # the field n, and the record's place
    ("self.rays[0].small = 1", 5),
    ("self.rays[0].far = True", 5),
    ("ray = self.rays[0]\nray.hit = 1\nray.origin[2] = 1.0", 2),
    ("ray = self.rays[self.n]\nray.hit = 1\nray.origin[2] = 1.0", 1 + 2 + 2),
    ("self.rays[0].hit = ipu.view(self.bytes, Ray)[0].hit", 2),
]


@pytest.mark.parametrize(("body", "slots"), COSTS, ids=[body for body, _ in COSTS])
def test_fields_cost_what_elements_of_their_type_do(body, slots):
    assert ran(body).slots == 12 + slots


def test_what_is_written_through_records_is_known_of_the_field():
    body = "v = ipu.view(self.bytes, Ray)\nif self.n > 0:\n    for r in self.rays[1:]:\n        r.ends[0].x = 1.0\nv[0].hit = 1"
    assert stored_fields(codelet_of(vertex(body, fields=FIELDS, prelude=PRELUDE)).typed) == {"rays", "bytes"}


TAKES = "ipu.view takes a vector of chars,"
EXAMPLE, SCRATCH = "ipu.view(self.bytes[begin:end], Ray)", "Ray is a record; an array of bytes holds one: write"
REFUSED = [  # code, what the caret is under, message
    ("self.rays[0] = self.rays[1]", "self.rays[0]", "self.rays[0] is a whole record: assign its fields one by one"),
    ("self.rays[0].centre = self.rays[1].centre", "self.rays[0].centre", "{} is a whole record: assign its fields one by one"),
    ("self.rays[0].ends[1] = self.rays[1].centre", "self.rays[0].ends[1]", "{} is a whole record: assign its fields one by one"),
    ("self.rays[0].origin = 3.0", "self.rays[0].origin", "{} is an array: assign its elements in a loop"),
    ("self.rays = self.rays[1:]", "self.rays", "self.rays is a vector: assign its elements in a loop"),
    ("self.rays[0].hti = 3", "self.rays[0].hti", "Ray has no field 'hti'; did you mean 'hit'?"),
    ("a = self.rays[0].zzz", "self.rays[0].zzz", "Ray has no field 'zzz'; it has kind, origin, ends, centre, hit, far, small"),
    ("a = self.rays.hit", "self.rays.hit", "self.rays are records: name one of them, and its field, as in self.rays[i].kind"),
    ("a = self.rays.size", "self.rays.size", "self.rays has no attributes in device code; write len(self.rays)"),
    ("self.given[0].hit = 3", "self.given[0].hit", "{} is an Input, which a vertex only reads: make the field an Output or InOut"),
    ("a = self.given[0]\na.hit = 3", "a.hit", "a.hit is an Input, which a vertex only reads: make the field an Output or InOut"),
    ("self.out[0] = self.rays[0]", "self.rays[0]", "expected a number, got a record, self.rays[0]; name a field of it"),
    ("a = self.rays[0] + 1", "self.rays[0]", "expected a number, got a record, self.rays[0]; name a field of it"),
    ("a = self.rays[0]\nb = a == a", "a", "expected a number, got a record, a; name a field of it"),
    ("self.out[0] = self.rays[0].origin", "self.rays[0].origin", "expected a number, got a vector, self.rays[0].origin; index it"),
    ("self.out[0] = self.rays", "self.rays", "expected a number, got a vector of records, self.rays; index it"),
    ("a = len(self.rays[0])", "len(self.rays[0])", None),
    (
        "a = self.rays[0][0]",
        "self.rays[0][0]",
        "self.rays[0] is a record, self.rays[0]; name a field of it, not a vector: it has no elements",
    ),
    ("a = self.rays[-1].hit", "-1", "index -1: device code has no negative indices; write len(...) - 1"),
    ("a = self.rays[0.5].hit", "0.5", "an index is an integer, got 0.5"),
    ("a = self.rays[0:2:2]", "2", "a slice in device code has step 1: write a loop over range(begin, end, step)"),
    ("a = self.rays[0]\na = self.rays", "self.rays", "'a': it is one record in one place and a vector in another; use two names"),
    ("a = self.rays[0]\na = self.rays[0].centre", None, "'a': it holds other records, or none, elsewhere; use two names"),
    ("a = self.rays\na = self.bytes", "self.bytes", "'a': it holds other records, or none, elsewhere; use two names"),
    ("a = self.rays[0]\na = 3", "3", "'a': it is a vector in one place and a number in another; use two names"),
    (
        "a = self.out\na = self.rays[0].origin",
        None,
        "'a': it is a part of a record in one place and another vector elsewhere; use two names",
    ),
    ("for a in self.rays[0]:\n    pass", "self.rays[0]", None),
    ("a = Ray()", "Ray", "Test: device code makes no records: assign the fields of one that is there, of Ray"),
    ("a = Ray", "Ray", "Ray is a record's name: the second argument of ipu.view(self.bytes[begin:end], Ray)"),
    ("a = ipu.view(self.bytes)", None, f"write {EXAMPLE}: a vector of chars, and the record that its bytes are"),
    ("a = ipu.view(self.bytes, INT)", "INT", "INT is no record; write a class INT(Record) with its fields"),
    ("a = ipu.view(self.bytes, Rya)", "Rya", None),
    ("a = ipu.view(self.out, Ray)", "self.out", f"{TAKES} self.out is one of FLOAT: make it UNSIGNED_CHAR"),
    ("a = ipu.view(self.rays, Ray)", "self.rays", "self.rays are records of Ray already; a view is of a vector of chars"),
    ("a = ipu.view(self.rows, Ray)", "self.rows", "ipu.view takes a vector of chars, self.rows is a row list, self.rows; index it"),
    ("a = ipu.view(self.n, Ray)", "self.n", "ipu.view takes a vector of chars, self.n is a number"),
    ("a = ipu.view(self.rays[0], Ray)", "self.rays[0]", None),
    ("a = ipu.view(TAPS, Ray)", "TAPS", "TAPS may be a constant table, whose bytes have no view: read its elements"),
    ("ipu.view(self.bytes, Ray)", "ipu.view(self.bytes, Ray)", None),
    ("self.rays[0].hit", "self.rays[0].hit", None),
    ("a = ipu.array(Ray, 2)", "Ray", f"{SCRATCH} ipu.view(ipu.array(UNSIGNED_CHAR, {SIZE}), Ray)"),
    ("self.rays[0].hit = 2.5", "2.5", None),
    (
        "self.rays[0].hit = self.out[0]",
        "self.out[0]",
        "self.rays[0].hit is an INT, the value a FLOAT: write int(...), which truncates",
    ),
    ("self.rays[0].far = 1", "1", "self.rays[0].far: expected a BOOL, got the number 1: write True or False"),
    ("self.rays[0].kind = 300", "300", None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "caret", "message"), REFUSED, ids=[code for code, _, _ in REFUSED])
def test_what_is_no_use_of_a_record_is_refused_with_what_to_write(code, caret, message):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(code, fields=FIELDS, prelude=PRELUDE))
    if message is not None:
        assert caught.value.msg == message.format(caret)
    if caret is not None:
        error = caught.value
        assert error.text.encode()[error.offset - 1 : error.end_offset - 1].decode() == caret


def test_a_record_of_a_helpers_own_scratch_array_ends_with_the_call():
    prelude = PRELUDE + f"\ndef own():\n    a = ipu.array(UNSIGNED_CHAR, {SIZE})\n    return ipu.view(a, Ray)[0]\n"
    with pytest.raises(CodeletError, match="own returns a scratch array of its own, which ends with the call"):
        codelet_of(vertex("r = own()\nr.hit = 3", fields=FIELDS, prelude=prelude))


def test_a_helper_that_returns_a_record_has_one_return():
    prelude = PRELUDE + "\ndef either(rays, n):\n    if n > 0:\n        return rays[0]\n    return rays[1]\n"
    with pytest.raises(CodeletError, match="a helper function that returns a record has one return, at its end"):
        codelet_of(vertex("r = either(self.rays, self.n)", fields=FIELDS, prelude=prelude))


def test_an_assignment_evaluates_its_record_once():
    assert sum(" = member " in line for line in lines(vertex("self.rays[self.n].hit = 3", fields=FIELDS, prelude=PRELUDE))) == 2


# random records and random programs


@st.composite
def drawn_records(draw):
    """The text of records R0, R1, ..., each of which may hold those before it; and the last one's number."""
    count, text = draw(st.integers(1, 3)), ""
    for number in range(count):
        held = [type.__name__ for type in SUPPORTED] + [f"R{inner}" for inner in range(number)] * 4
        text += f"class R{number}(Record):\n"
        for at in range(draw(st.integers(1, 4))):
            type, length = draw(st.sampled_from(held)), draw(st.none() | st.integers(1, 3))
            text += f"    f{at}: {type if length is None else f'Array[{type}, {length}]'}\n"
    return text, count - 1


def places(dtype, path="", steps=()):
    """All numbers in a record: how they are written, how NumPy reaches them, and their types."""
    for name in dtype.names:
        inner = dtype[name]
        for index in range(inner.shape[0]) if inner.shape else [None]:
            base = inner.base
            written = f"{path}.{name}" + ("" if index is None else f"[{index}]")
            reached = (*steps, name, *(() if index is None else (index,)))
            if base.names:
                yield from places(base, written, reached)
            else:
                yield written, reached, base


@examples(40)
@given(drawn_records(), st.data())
def test_random_programs_on_random_records_do_what_numpy_does(drawn, data):
    text, last = drawn
    prelude = "from pypoplar import Array, Record\n" + text
    dtype = module_from("from pypoplar import *\n" + text)[f"R{last}"].dtype
    count = data.draw(st.integers(1, 3))
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    array = seed.integers(0, 100, count * dtype.itemsize, np.uint8).view(dtype)  # padding has values, too
    numbers = list(places(dtype))
    for _, reached, base in numbers:
        if base == np.bool_:
            for record in range(count):
                put(array, record, reached, bool(seed.integers(2)))
    given, body = array.view(np.uint8), []
    expected = given.copy().view(dtype)
    for _ in range(data.draw(st.integers(1, 5))):
        written, reached, base = data.draw(st.sampled_from(numbers))
        source, target = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
        index = data.draw(st.sampled_from([str(target), f"self.n + {target}"]))
        if data.draw(st.booleans()):
            body += [f"r = self.a[{source}]", f"self.a[{index}]{written} = r{written}"]
            put(expected, target, reached, at(expected, source, reached))
        else:
            value = bool(source) if base == np.bool_ else 7 + source
            body.append(f"self.a[{index}]{written} = {value}")
            put(expected, target, reached, value)
    cls = vertex("\n".join(body), fields=f"a: InOut[Vector[R{last}]]\nn: INT", prelude=prelude)
    result = run(cls, a=given, n=0)
    compare_forms(priced_codelet(cls), [{"a": given, "n": 0}], touches=True, unwritten=True)
    compare_forms(priced_codelet(cls), [{"a": given, "n": 0}] * 9, flops=True)
    assert result.fault is None
    assert result.fields["a"].tobytes() == expected.tobytes()


def at(array, record, reached):
    value = array[record]
    for step in reached:
        value = value[step]
    return value


def put(array, record, reached, value):
    *steps, last = reached
    owner = array[record]
    for step in steps:
        owner = owner[step]
    owner[last] = value
