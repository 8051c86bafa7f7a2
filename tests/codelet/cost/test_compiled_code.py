"""What the vendor's compiler makes of a codelet: published listings and measurements, and each rule by itself."""

import pytest
from attrs import evolve
from codelet_rig import codelet_of, vertex
from published_codelets import AlievPanfilov, Squares, compiled_code, inner_round, instructions

from pypoplar.codelet.cost.compiled_code import compiled
from pypoplar.codelet.ir.typed import IfElse, Leave, Once
from pypoplar.target import Target

TARGETS = {name: Target.of_preset(name) for name in ("ipu1", "ipu2", "bow")}


def code_of(body, fields, *, target="ipu2", base="Vertex", head="self", prelude="", **changes):
    typed = codelet_of(vertex(body, fields=fields, base=base, head=head, prelude=prelude)).typed
    return compiled(evolve(typed, **changes), TARGETS[target])


def deepest(code):
    """The run of the innermost loop."""
    return max(code.runs, key=lambda run: run.depth)


def names(run):
    return [instruction.name for bundle in run.bundles for instruction in bundle.instructions]


def test_the_listing_of_aliev_panfilov_has_54_instructions_in_38_bundles():
    run = inner_round(AlievPanfilov, "ipu2")
    assert abs(len(run.bundles) - 38) <= 0.15 * 38
    assert abs(instructions(run) - 54) <= 0.15 * 54
    loop = compiled_code(AlievPanfilov, "ipu2").loops[1]
    assert loop.price is None
    assert "more than 8" in loop.reason


def test_the_listing_of_an_int_loop_has_seven_slots():
    code = code_of("for i in range(len(self.data)):\n    self.data[i] += 1", "data: InOut[Vector[INT]]", target="ipu1")
    assert names(deepest(code)) == ["ld32", "add_i32", "st32", "add", "ld32", "cmp", "brnz"]


ADDED = "for i in range(self.size):\n    self.data[i] += float(self.k)"


@pytest.mark.parametrize(("alignment", "slots"), [(0, 6), (4, 6), (8, 4)])
def test_the_listings_of_float_loops_have_six_slots_for_two_elements_and_four_where_they_are_aligned(alignment, slots):
    typed = codelet_of(vertex(ADDED, fields="data: InOut[Vector[FLOAT]]\nsize: INT\nk: INT")).typed
    fields = tuple(evolve(field, alignment=alignment) if field.name == "data" else field for field in typed.fields)
    (loop,) = compiled(evolve(typed, fields=fields), TARGETS["ipu1"]).loops
    assert (loop.price.width, loop.price.slots) == (2, slots)


@pytest.mark.parametrize("target", ["ipu1", "ipu2"])
def test_a_masked_count_makes_a_repeat_of_two_slots(target):
    assert compiled_code(Squares, target).loops[0].code.kind.value == "rpt"
    assert inner_round(Squares, target).slots == 2


@pytest.mark.parametrize(("mask", "target", "kind"), [
    (0xFFF, "ipu1", "rpt"), (0x1FFF, "ipu1", "brnzdec"), (0x1FFF, "ipu2", "rpt"), (0xFFFF, "bow", "rpt"),
    (0x1FFFF, "bow", "brnzdec"),
])  # fmt: skip
def test_a_repeat_needs_a_count_that_fits_its_register(mask, target, kind):
    body = f"for i in range(self.n & {mask}):\n    self.t += self.x[i]"
    code = code_of(body, "x: Input[Vector[FLOAT]]\nt: FLOAT\nn: INT", target=target)
    assert code.loops[0].code.kind.value == kind


@pytest.mark.parametrize(("element", "op", "published"), [
    ("INT", "{a} + {b}", 4.17), ("INT", "~{a}", 3.0), ("LONGLONG", "{a} & {b}", 8.17), ("LONGLONG", "{a} + {b}", 10.17),
    ("LONGLONG", "{a} * {b}", 27.17), ("LONGLONG", "~{a}", 6.0), ("LONGLONG", "{a} << {b}", 11.17),
])  # fmt: skip
def test_measured_operations_on_integers(element, op, published):
    body = "self.o[0] = " + op.format(a="self.a[0]", b="self.b[0]")
    fields = f"a: Input[Vector[{element}]]\nb: Input[Vector[{element}]]\no: Output[Vector[{element}]]"
    pointers = 2 if "{b}" not in op else 3
    assert code_of(body, fields).runs[0].slots - pointers == pytest.approx(published, rel=0.05)


# Rules


def test_a_load_is_shared_until_a_store_of_its_kind():
    fields = "x: InOut[Vector[FLOAT]]\nn: InOut[Vector[INT]]\nk: FLOAT"
    shared = code_of("self.n[0] = 1\nself.x[0] = self.k * self.k", fields)
    between = code_of("a = self.k\nself.n[0] = 1\nself.x[0] = a * self.k", fields)
    again = code_of("a = self.k\nself.x[1] = a\nself.x[0] = a * self.k", fields)
    assert [names(code.runs[0]).count("ld32") for code in (shared, between, again)] == [3, 3, 3 - 1 + 1]
    assert names(again.runs[0]).count("ld32") == 3


def test_a_store_of_characters_may_change_anything():
    fields = "x: InOut[Vector[FLOAT]]\nc: InOut[Vector[UNSIGNED_CHAR]]"
    body = "a = self.x[0]\nself.{}[1] = {}\nself.x[2] = a + self.x[0]"
    floats, characters = (code_of(body.format(*pair), fields) for pair in (("x", "a"), ("c", "1")))
    assert names(floats.runs[0]).count("ld32") == 2  # the pointer, x[0]
    assert names(characters.runs[0]).count("ld32") == 2 + 1 + 2  # the pointers, x[0]; x's pointer and x[0] again


def test_what_does_not_change_in_a_loop_is_computed_in_front_of_it():
    fields = "x: InOut[Vector[FLOAT]]\ny: FLOAT\nn: INT"
    body = "for i in range(self.n):\n    self.x[i] = self.x[i] + float(self.n) * 0.1"
    assert names(deepest(code_of(body, fields))) == ["ld32", "add_f32", "st32", "brnzdec"]


def test_a_constant_of_one_instruction_is_made_again_and_one_of_two_is_not():
    body = "for i in range(self.n):\n    self.t = self.t * {}"
    one, two = (names(deepest(code_of(body.format(c), "t: FLOAT\nn: INT"))) for c in ("0.5", "0.1"))
    assert ("or" in one, "or" in two, "setzi, or" in two) == (True, False, False)


def test_a_software_function_ends_the_repeat():
    loop = code_of("for i in range(9):\n    self.t = math.sin(self.t)", "t: FLOAT").loops[0]
    assert (loop.code.kind.value, loop.code.reason) == ("brnzdec", "there is a software function in it: sin_f32")


@pytest.mark.parametrize(("body", "kind", "reason"), [
    ("for i in range(self.n):\n    if self.x[i] > 0.0:\n        break", "brnz", "it may end early"),
    ("for i in range(self.n):\n    if self.x[i] > 0.0:\n        self.n = 3", "brnz", "a store in it may change its end"),
    ("for i in range(7):\n    if self.x[i] > 0.0:\n        self.x[i] = 0.0", "brnzdec", "there are branches in it"),
    ("for i in range(7):\n    for j in range(7):\n        self.x[i] += 1.0", "brnzdec", "there is a loop in it"),
    ("for i in range(0, self.n, 3):\n    self.x[i] += 1.0", "brnz", "counting its rounds takes a division"),
    ("for i in range(0, 9, self.n):\n    self.x[i] += 1.0", "brnz", "its step is not a constant"),
    ("for i in range(70_000):\n    self.x[i] += 1.0", "brnzdec", "it may have 70,000 rounds, a repeat at most 65,536"),
    ("for i in range(self.n):\n    self.x[i] += 1.0", "brnzdec", "nothing says that it has at most 65,536 rounds"),
    ("for i in range(7):\n    self.x[i] += 1.0", "rpt", ""),
])  # fmt: skip
def test_how_a_loop_goes_round(body, kind, reason):
    loop = code_of(body, "x: InOut[Vector[FLOAT]]\nn: INT").loops[0]
    assert loop.code.kind.value == kind
    assert loop.code.reason.startswith(reason)
    assert bool(loop.code.reason) == bool(reason)


@pytest.mark.parametrize(("body", "reason"), [
    ("for i in range(self.n):\n    self.t += self.x[i]", "it stores to one place in every round"),
    ("t = 0.0\nfor i in range(self.n):\n    t += self.x[i]\nself.t = t", "it takes a value from round to round, such as a sum"),
    ("k = self.t\nfor i in range(self.n):\n    self.t = k\n    self.x[i] = 1.0", "it stores to one place in every round"),
    ("for i in range(self.n):\n    self.x[i + 1] = self.x[i] * 2.0", "a round uses what the round before it stored"),
    ("for i in range(self.n):\n    self.x[i] = self.x[i + 1] * 2.0", ""),
    ("for i in range(self.n):\n    self.x[2 * i] = 1.0", "its elements do not follow each other"),
    ("for i in range(self.n):\n    self.x[i] = float(i)", "it computes with its variable"),
    ("for i in range(self.n):\n    self.x[i] = math.sin(self.x[i])", "there is a software function in it: sin_f32"),
    ("for i in range(self.n):\n    self.m[i] += 1", "a store in it may change its end, which is read again in each round"),
    ("for i in range(7):\n    self.m[i] += 1", "the elements that it goes along are not all FLOAT, or all HALF"),
    ("for i in range(self.n):\n    self.x[i] = self.t", ""),
])  # fmt: skip
def test_why_a_loop_is_not_run_on_vectors(body, reason):
    loop = code_of(body, "x: InOut[Vector[FLOAT]]\nm: InOut[Vector[INT]]\nt: FLOAT\nn: INT").loops[0]
    assert loop.reason == reason
    assert (loop.price is None) == bool(reason)


MANY = "for i in range(self.n):\n    self.o[i] = " + " + ".join(f"self.a{k}[i]" for k in range(9))
VECTORS = "\n".join(f"a{k}: Input[Vector[FLOAT]]" for k in range(9)) + "\no: Output[Vector[FLOAT]]\nn: INT"


def test_beyond_eight_comparisons_the_compiler_gives_up_unless_the_user_says_that_nothing_overlaps():
    assert code_of(MANY, VECTORS).loops[0].reason == "to tell that nothing overlaps takes 9 comparisons, more than 8"
    assert code_of(MANY, VECTORS, distinct=(("o", "a0"),)).loops[0].reason == ""


def test_fields_that_are_one_tensor_fail_the_checks():
    typed = codelet_of(
        vertex("for i in range(7):\n    self.o[i] = self.x[i]", fields="x: Input[Vector[FLOAT]]\no: Output[Vector[FLOAT]]")
    ).typed
    (loop,) = compiled(typed, TARGETS["bow"], (("x", "o"),)).loops
    assert loop.reason == "o and x are one tensor in some vertex, so its checks fail"


def test_supervisor_code_has_neither_pairs_nor_hardware_loops():
    code = code_of("for i in range(7):\n    self.m[i] += 1", "m: InOut[Vector[INT]]", base="SupervisorVertex")
    assert code.loops[0].code.kind.value == "brnz"
    assert all(len(bundle.instructions) == 1 for run in code.runs for bundle in run.bundles)


def test_the_bound_is_the_busier_pipe_of_aligned_pairs_without_what_counts_the_rounds():
    (loop,) = code_of(ADDED, "data: InOut[Vector[FLOAT]]\nsize: INT\nk: INT").loops
    assert (loop.price.bound, loop.price.bound_of_rest) == (2, 2)  # a load and a store, of two elements or one
    run = inner_round(AlievPanfilov, "ipu2")
    assert 29 / 2 <= run.bound < 29 < run.slots  # as many operations on floats, of two elements at once where it is written so


@pytest.mark.parametrize("body", ["while True:\n    pass", "while True:\n    continue", "k = 5\nwhile k > 3:\n    pass"])
def test_a_round_of_a_loop_without_end_costs_its_branch(body):
    run = deepest(code_of(body, "n: INT"))
    assert names(run) == ["bri"]


@pytest.mark.parametrize(("operation", "slots"), [("% 8", 1), ("// 8", 1), ("// self.m", 270), ("% self.m", 285)])
def test_a_division_by_a_power_of_two_is_a_mask_or_a_shift_and_by_what_may_be_anything_a_function(operation, slots):
    code = code_of(f"self.n = self.n {operation}", "n: INT\nm: INT")
    assert code.runs[0].slots == operation.count("m") + 1 + slots + 1  # a load for each field, a store


UPPER_WORD = 16 - 2  # the backend's code for the upper word of a product, but for parting the constant


@pytest.mark.parametrize("type", ["INT", "UNSIGNED_INT"])
@pytest.mark.parametrize("divisor", ["6", "ipu.worker_count()", "(ipu.worker_count() + 1)", "ipu.worker_count() * 2"])
def test_a_division_by_a_known_number_is_a_product_with_its_reciprocal(type, divisor):
    fields = f"n: {type}"
    sign = 2 if type == "INT" else 0
    counted = "count" in divisor
    divisor, computed = ("", divisor) if counted else (divisor, "1")
    body = f"d = {type}({computed})\nself.n = self.n {{}} {divisor or 'd'}"
    whole, rest = (code_of(body.format(operation), fields).runs[0] for operation in ("//", "%"))
    made = [name for name in names(whole) if name in ("worker_count", "add_i32", "mul_i32")]
    assert (
        whole.slots == len(made) + 2 + 1 + UPPER_WORD + 1 + sign + 1
    )  # halves of the reciprocal, load, product, shift, sign, store
    assert rest.slots == whole.slots + 2  # multiply, subtract


def test_a_supervisor_divides_by_one_and_workers_by_their_number():
    body = "self.n = self.n // ipu.worker_count()"
    assert code_of(body, "n: INT", base="SupervisorVertex").runs[0].slots < code_of(body, "n: INT").runs[0].slots < 30


def test_the_reciprocal_is_made_in_front_of_a_loop_which_can_be_a_repeat():
    code = code_of("for i in range(9):\n    self.n = self.n // 6", "n: INT")
    assert code.loops[0].code.kind.value == "rpt"
    assert names(code.runs[0]).count("setzi") == 2


@pytest.mark.parametrize("end", ["n = self.n", "n = len(self.m)"])
def test_a_loop_up_to_a_local_reads_its_end_once_whatever_its_body_stores(end):
    fields = "m: InOut[Vector[INT]]\nn: INT"
    copied = code_of(f"{end}\nfor i in range(n):\n    self.m[i] += 1", fields)
    computed = code_of(f"{end} + 0\nfor i in range(n):\n    self.m[i] += 1", fields)
    read = code_of(f"for i in range({end.removeprefix('n = ')}):\n    self.m[i] += 1", fields)
    assert names(deepest(copied)) == names(deepest(computed)) == ["ld32", "add_i32", "st32", "brnzdec"]
    assert names(deepest(read))[-3:] == ["ld32", "cmp", "brnz"]


def test_a_loop_up_to_a_helpers_parameter_reads_its_end_once():
    prelude = "def count(m, n):\n    for i in range(n):\n        m[i] += 1\n"
    cls = vertex("count(self.m, self.n)", fields="m: InOut[Vector[INT]]\nn: INT", prelude=prelude)
    assert compiled(codelet_of(cls).typed, TARGETS["bow"]).loops[0].code.kind.value == "brnzdec"


@pytest.mark.parametrize("amount", [-1, -(2**31), 32, 2**31 - 1])
def test_a_shift_that_is_an_error_has_a_price(amount):
    assert code_of(f"amount = {amount}\nif self.n > 0:\n    self.n = self.n << amount", "n: INT").runs[1].slots > 0


@pytest.mark.parametrize(("most", "slots"), [(131_072, 5), (131_074, 6)])
def test_rounds_on_vectors_are_a_repeat_where_half_the_count_fits_its_register(most, slots):
    body = f"for i in range({most}):\n    self.x[i] = self.x[i] * 2.0"
    (loop,) = code_of(body, "x: InOut[Vector[FLOAT]]").loops
    assert loop.code.kind.value == "brnzdec"
    assert (loop.price.width, loop.price.slots) == (2, slots)


# The instructions of each run; of each loop how many elements it takes at once in how many slots, or None for one by one.
LISTINGS = {
    "the elements of a slice": (
        "part = self.x[self.b:self.e]\nfor i in range(len(part)):\n    self.y[i] = part[i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nb: INT\ne: INT",
        [
            "ld32 ld32 sub ld32 ld32 add cmp add add cmpult cmpult and shl brnz cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 st32 brnzdec",
        ],
        [(2, 5)],
    ),
    "the length of a slice": (
        "part = self.x[self.b:self.e]\nself.n = len(part)",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nb: INT\ne: INT\nn: Output[INT]",
        [
            "ld32 ld32 sub ld32 st32",
        ],
        [],
    ),
    "an array of the tile": (
        "kept = ipu.array(FLOAT, 4)\nfor i in range(4):\n    kept[i] = self.x[i]\nfor i in range(4):\n    self.y[i] = kept[3 - i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]",
        [
            "ld32 add rpt",
            "ld32 st32",
            "ld32 add rpt",
            "ld32 st32",
        ],
        [None, None],
    ),
    "rows of a list": (
        "for r in range(len(self.z)):\n    row = self.z[r]\n    for i in range(len(row)):\n        row[i] = self.x[i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nz: Output[VectorList[FLOAT]]",
        [
            "ld32 ld32 ld32 cmp add brz",
            "ld32 ld32 cmp add add cmpult cmpult and shl brnz cmpult brnz and shr add sub cmpeq brnz brz add brnzdec",
            "ld32 st32 brnzdec",
        ],
        [None, (2, 5)],
    ),
    "a loop without count that is left": (
        "i = 0\nwhile i < len(self.x):\n    if self.x[i] > 3.0:\n        break\n    i += 1\nself.y[i] = 1.0",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]",
        [
            "setzi ld32 ld32",
            "less_i32 brz",
            "ld32 or less_f32 mov brz",
            "add_i32",
            "or ld32 st32",
        ],
        [],
    ),
    "a load in a branch stays there": (
        "t = 0.0\nfor i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        t += self.y[0]\nself.y[1] = t",
        "x: Input[Vector[FLOAT]]\ny: InOut[Vector[FLOAT]]",
        [
            "ld32 or ld32 ld32 cmp add brz",
            "ld32 less_f32 mov brz add brnzdec",
            "ld32 add_f32",
            "st32",
        ],
        [None],
    ),
    "an index from two branches": (
        "k = 0\nif self.a > 0:\n    k = self.b\nelse:\n    k = self.a + 1\nself.y[k] = self.x[k]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\na: INT\nb: INT",
        [
            "ld32 less_i32 brz",
            "ld32",
            "add_i32",
            "ld32 ld32 ld32 st32",
        ],
        [],
    ),
    "neighbours by offsets": (
        "for i in range(len(self.y) - 2):\n    self.y[i] = self.x[i] + self.x[i + 1] + self.x[i + 2]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]",
        [
            "ld32 sub_i32 ld32 ld32 cmp add add cmpult cmpult and shl brnz cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 ld32 add_f32 ld32 add_f32 st32 brnzdec",
        ],
        [(2, 10)],
    ),
    "a step that is not a constant": (
        "for i in range(0, self.n, self.s):\n    self.y[i] = self.x[i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nn: INT\ns: INT",
        [
            "ld32 ld32 ld32 ld32 mov cmp brz",
            "ld32 st32 add cmp brnz",
        ],
        [None],
    ),
    "one sum for several addresses": (
        "self.y[self.a + self.b] = self.x[self.a + self.b]\nself.y[self.a + self.b + 1] = self.x[self.a + self.b]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\na: INT\nb: INT",
        [
            "ld32 ld32 add_i32 ld32 ld32 ld32 st32 ld32 shl st32",
        ],
        [],
    ),
    "a store ends what loads of its type have": (
        "self.z[0] = self.z[1] + 1\nself.z[1] = self.z[0] + self.z[2]\nself.z[2] = self.z[1]",
        "z: InOut[Vector[INT]]",
        [
            "ld32 ld32 add_i32 st32 ld32 add_i32 st32 st32",
        ],
        [],
    ),
    "constants of one instruction and of two": (
        "self.z[0] = self.z[1] + 32767\nself.z[2] = self.z[3] + 32768\nself.z[4] = self.z[5] & 4095\nself.z[6] = self.z[7] & 4096",
        "z: InOut[Vector[INT]]",
        [
            "ld32 ld32 add_i32 st32 ld32 setzi add_i32 st32 ld32 and_i32 st32 ld32 setzi and_i32 st32",
        ],
        [],
    ),
    "the counter ends a run": (
        "begin = ipu.cycle_count()\nself.z[0] = self.z[1] + 1\nself.z[1] = int(ipu.cycle_count() - begin)",
        "z: InOut[Vector[INT]]",
        [
            "cycle_count",
            "ld32 ld32 add_i32 st32 cycle_count",
            "sub_u32 st32",
        ],
        [],
    ),
    "a store of another type ends nothing": (
        "self.z[0] = self.w[0] + 1\nself.y[0] = 1.0\nself.z[1] = self.w[0] + 2",
        "z: Output[Vector[INT]]\nw: InOut[Vector[INT]]\ny: Output[Vector[FLOAT]]",
        [
            "ld32 or ld32 add_i32 ld32 st32 ld32 st32 ld32 add_i32 st32",
        ],
        [],
    ),
    "what does not change is in front": (
        "for i in range(self.n):\n    self.z[i] = self.w[3] + self.a * self.b\n    self.y[i] = self.x[0]",
        "z: Output[Vector[INT]]\nw: Input[Vector[INT]]\ny: Output[Vector[FLOAT]]\nx: Input[Vector[FLOAT]]\na: INT\nb: INT\nn: INT",
        [
            "ld32 ld32 ld32 ld32 ld32 mov cmp brz",
            "ld32 ld32 ld32 mul_i32 add_i32 st32 ld32 st32 add ld32 cmp brnz",
        ],
        [None],
    ),
    "the start of a row is loaded once": (
        "self.y[0] = self.r[self.k][1] + self.r[self.k][2]\nself.y[1] = self.r[self.k][0]",
        "r: Input[VectorList[FLOAT]]\ny: Output[Vector[FLOAT]]\nk: INT",
        [
            "ld32 ld32 ld32 ld32 ld32 add_f32 ld32 st32 ld32 st32",
        ],
        [],
    ),
    "a load behind a store of the round before": (
        "for i in range(len(self.x)):\n    self.x[i] = self.x[i] * 2.0 + self.x[i + 1]",
        "x: InOut[Vector[FLOAT]]",
        [
            "ld32 ld32 cmp add cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 or mul_f32 ld32 add_f32 st32 brnzdec",
        ],
        [(2, 8)],
    ),
    "a repeat on vectors of an unsure count": (
        "for i in range(self.n & 8191):\n    self.x[i] = self.x[i] * 2.0",
        "x: InOut[Vector[FLOAT]]\nn: INT",
        [
            "ld32 setzi and_i32 ld32 cmp rpt cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 or mul_f32 st32",
        ],
        [(2, 5)],
    ),
    "constants below 16 bits": (
        "self.z[0] = self.z[1] & -40000\nself.z[2] = self.z[3] + -32769\nself.z[4] = self.z[5] - 32768",
        "z: InOut[Vector[INT]]",
        [
            "ld32 ld32 setzi and_i32 st32 ld32 setzi add_i32 st32 ld32 setzi sub_i32 st32",
        ],
        [],
    ),
    "loads of branches": (
        "for i in range(self.n):\n    if self.z[i] > 0:\n        self.w[i] = self.v[0]\n    else:\n        self.w[i] = 1",
        "z: Input[Vector[INT]]\nw: Output[Vector[INT]]\nv: Input[Vector[INT]]\nn: INT",
        [
            "ld32 ld32 ld32 ld32 setzi mov cmp brz",
            "ld32 less_i32 brz add add add ld32 cmp brnz",
            "ld32 st32",
            "st32",
        ],
        [None],
    ),
    "a round that ends early": (
        "t = 0\nfor i in range(self.n):\n    if self.z[i] > 0:\n        continue\n    t += self.z[0]\nself.w[0] = t",
        "z: Input[Vector[INT]]\nw: Output[Vector[INT]]\nn: INT",
        [
            "ld32 setzi ld32 cmp add brz",
            "ld32 less_i32 brz add brnzdec",
            "ld32 add_i32",
            "ld32 st32",
        ],
        [None],
    ),
    "a slice of a known length": (
        "part = self.x[self.k:self.k + 4]\nfor i in range(len(part)):\n    self.y[i] = part[i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nk: INT",
        [
            "ld32 ld32 ld32 add rpt",
            "ld32 st32",
        ],
        [None],
    ),
    "a count that a shift bounds": (
        "for i in range(self.n >> 16):\n    self.y[i] = self.x[i]",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nn: UNSIGNED_INT",
        [
            "ld32 shift_right_u32 ld32 ld32 cmp rpt brz",
            "ld32 st32",
        ],
        [None],
    ),
    "a repeat that only rounds on vectors can be": (
        "for i in range(self.n & 131071):\n    self.x[i] = self.x[i] * 2.0",
        "x: InOut[Vector[FLOAT]]\nn: INT",
        [
            "ld32 setzi and_i32 ld32 cmp add cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 or mul_f32 st32 brnzdec",
        ],
        [(2, 5)],
    ),
    "a number beside vectors": (
        "for i in range(len(self.x)):\n    self.x[i] = self.x[i] * self.k",
        "x: InOut[Vector[FLOAT]]\nk: FLOAT",
        [
            "ld32 ld32 cmp add add cmpult cmpult and shl brnz cmpult brnz and shr add sub cmpeq brnz brz",
            "ld32 ld32 mul_f32 st32 brnzdec",
        ],
        [(2, 6)],
    ),
    "two offsets of one vector": (
        "self.w[0] = self.z[1] + self.z[2]\nself.w[1] = self.z[1]\nself.z[1] = 3\nself.w[2] = self.z[2] + self.z[1]",
        "z: InOut[Vector[INT]]\nw: Output[Vector[INT]]",
        [
            "ld32 ld32 ld32 add_i32 ld32 st32 ld32 st32 setzi st32 ld32 ld32 add_i32 st32",
        ],
        [],
    ),
    "the start of a row in a branch": (
        "t = 0.0\nfor i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        t += self.r[1][0]\nself.y[0] = t",
        "x: Input[Vector[FLOAT]]\nr: Input[VectorList[FLOAT]]\ny: Output[Vector[FLOAT]]",
        [
            "ld32 or ld32 ld32 cmp add brz",
            "ld32 less_f32 mov brz add brnzdec",
            "ld32 ld32 add_f32",
            "ld32 st32",
        ],
        [None],
    ),
    "an address that is a difference": (
        "self.y[(self.a + 1) - self.b] = 1.0",
        "y: Output[Vector[FLOAT]]\na: INT\nb: INT",
        [
            "ld32 or ld32 ld32 sub shl st32",
        ],
        [],
    ),
    "a loop that begins at a number of the vertex": (
        "for i in range(self.n, 9):\n    self.y[i] = 1.0",
        "y: Output[Vector[FLOAT]]\nn: INT",
        [
            "ld32 ld32 shl add cmp sub add cmpult brnz and shr add sub cmpeq brnz brz",
            "or st32 brnzdec",
        ],
        [(2, 3)],
    ),
    "what a round computes behind its end is computed again behind the loop": (
        "k = self.k\nfor i in range(9):\n    if self.x[i] > 0.0:\n        break\n    self.x[i] = math.sin(k)\n"
        "self.y[0] = math.sin(k)",
        "x: InOut[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nk: FLOAT",
        [
            "ld32 ld32 mov",
            "ld32 less_f32 mov brz add cmp brnz",
            "sin_f32 st32",
            "sin_f32 ld32 st32",
        ],
        [None],
    ),
    "a load behind a branch": (
        "t = 0.0\nfor i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        t += 1.0\n    t += self.x[0]\nself.y[0] = t",
        "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]",
        [
            "ld32 or ld32 ld32 cmp add brz",
            "ld32 less_f32 mov brz add brnzdec",
            "or add_f32",
            "add_f32",
            "ld32 st32",
        ],
        [None],
    ),
}


@pytest.mark.parametrize(("shift", "kind"), [(20, "rpt"), (19, "brnzdec")])
def test_a_shift_bounds_the_count_of_a_repeat(shift, kind):
    code = code_of(
        f"for i in range(self.n >> {shift}):\n    self.x[i] = 0.0", "x: Output[Vector[FLOAT]]\nn: UNSIGNED_INT", target="ipu1"
    )
    assert code.loops[0].code.kind.value == kind


@pytest.mark.parametrize("what", LISTINGS)
def test_the_listing_of_each_construct(what):
    body, fields, runs, loops = LISTINGS[what]
    code = code_of(body, fields)
    assert [" ".join(names(run)) for run in code.runs if run.bundles] == runs
    assert [loop.price and (loop.price.width, loop.price.slots) for loop in code.loops] == loops


def test_a_length_is_an_unsigned_number_of_32_bits():
    loop = code_of("for i in range(len(self.x) >> 15):\n    self.x[i] = 0.0", "x: Output[Vector[FLOAT]]").loops[0]
    assert loop.code.reason == "it may have 131,071 rounds, a repeat at most 65,536"


@pytest.mark.parametrize(("which", "listing"), [
    ("TABLE[self.n][1]", "ld32 setzi mul shl ld32 ld32 st32"),
    ("TABLE[self.n][1] + WIDER[self.n][1]", "ld32 setzi mul shl ld32 setzi mul shl ld32 add_i32 ld32 st32"),
])  # fmt: skip
def test_rows_of_constant_tables_need_no_pointers_from_memory(which, listing):
    tables = "TABLE = ((1, 2), (3, 4))\nWIDER = ((1, 2, 3), (4, 5, 6))"
    code = code_of(f"self.y[0] = {which}", "y: Output[Vector[INT]]\nn: INT", prelude=tables)
    assert [" ".join(names(run)) for run in code.runs] == [listing]


def test_neighbours_in_a_constant_table_lie_behind_each_other():
    """Many pointers move by one distance; what lies in front of a pointer's first access would take a sum of its own."""
    vectors = [f"x{k}" for k in range(6)]
    fields = "\n".join([*(f"{name}: Input[Vector[INT]]" for name in vectors), "y: Output[Vector[INT]]", "n: INT"])
    total = " + ".join(f"self.{name}[i]" for name in vectors)
    adds = []
    for rows in ("TABLE[i][0] + TABLE[i + 1][0]", "TABLE[i + 1][0] + TABLE[i][0]"):
        code = code_of(f"for i in range(self.n):\n    self.y[i] = {total} + {rows}", fields, prelude="TABLE = ((1, 2), (3, 4))")
        adds.append(names(deepest(code)).count("add"))
    assert adds[1] == adds[0] + 1


PLACES = "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nr: Input[VectorList[FLOAT]]\nb: INT\nk: INT"


@pytest.mark.parametrize(("body", "loads"), [
    ("p = self.x[2:6]\nself.y[0] = p[1] + self.x[3]", 3),  # one element, and two pointers
    ("p = self.x[2:6]\nself.y[0] = p[1] + self.x[2]", 4),
    ("p = self.x[2:6]\nq = p[1:]\nself.y[0] = q[1] + self.x[4]", 3),
    ("p = self.x[self.b:]\nq = p[self.k:]\nself.y[0] = q[1] + self.x[self.b + self.k + 1]", 5),
    ("p = self.r[1:3]\nself.y[0] = p[1][0] + self.r[2][0]", 4),  # the row's pointer, too
    ("p = self.r[1:3]\nq = p[1:]\nself.y[0] = q[0][0] + self.r[2][0]", 4),
    ("p = self.r[self.b:]\nself.y[0] = p[self.k][0] + self.r[self.b + self.k][0]", 6),
])  # fmt: skip
def test_an_element_is_loaded_once_by_whichever_slice_it_is_reached(body, loads):
    (run,) = code_of(body, PLACES).runs
    assert names(run).count("ld32") == loads


PAIRS = """
from pypoplar import Array, Record

class Pair(Record):
    a: Array[FLOAT, 2]
    b: Array[FLOAT, 3]
"""


@pytest.mark.parametrize(("element", "loads"), [("p[0].b[1]", 3), ("p[1].b[1]", 4)])
def test_a_member_is_loaded_once_by_whichever_slice_of_records_it_is_reached(element, loads):
    fields = "t: Input[Vector[Pair]]\ny: Output[Vector[FLOAT]]"
    (run,) = code_of(f"p = self.t[1:]\nself.y[0] = {element} + self.t[1].b[1]", fields, prelude=PAIRS).runs
    assert names(run).count("ld32") == loads


def test_members_lie_behind_each_other():
    """As with neighbours in a table, what lies in front of a pointer's first access takes a sum of its own."""
    vectors = [f"x{k}: Input[Vector[FLOAT]]" for k in range(6)]
    total, fields = " + ".join(f"self.x{k}[i]" for k in range(6)), ["t: Input[Vector[Pair]]", "y: Output[Vector[FLOAT]]", "n: INT"]
    adds = []
    for members in ("self.t[i].a[0] + self.t[i].b[0]", "self.t[i].b[0] + self.t[i].a[0]"):
        body = f"for i in range(self.n):\n    self.y[i] = {total} + {members}"
        adds.append(names(deepest(code_of(body, "\n".join([*vectors, *fields]), prelude=PAIRS))).count("add"))
    assert adds[1] == adds[0] + 1


@pytest.mark.parametrize("length", ["len(self.y)", "len(self.r[0])"])
def test_a_part_of_a_length_has_few_rounds(length):
    """A length has 32 bits, so that what is left of it fits a repeat."""
    fields = "y: InOut[Vector[FLOAT]]\nr: Input[VectorList[FLOAT]]"
    code = code_of(f"for i in range({length} >> 20):\n    self.y[i] = self.y[i] * 2.0", fields)
    assert "rpt" in names(code.runs[0])


def test_rows_of_a_list_are_pieces_of_its_field():
    """What the codelet demands of two fields holds for the rows of one: nothing is compared in front of the loop on vectors."""
    body = "for r in range(len(self.z)):\n    row = self.z[r]\n    for i in range(len(row)):\n        row[i] = self.x[i]"
    fields = "x: Input[Vector[FLOAT]]\nz: Output[VectorList[FLOAT]]"
    before = [names(code_of(body, fields, distinct=pairs).runs[1]) for pairs in ((), (("x", "z"),))]
    assert [listing.count("and") for listing in before] == [2, 1]


RAY = """
from pypoplar import Array, Record

class Ray(Record):
    kind: CHAR
    origin: Array[FLOAT, 3]
    hit: INT
"""


@pytest.mark.parametrize(("body", "listing"), [
    ("self.rays[2].hit = 1\nself.y[0] = self.rays[2].origin[1]", "setzi ld32 st32 ld32 ld32 st32"),
    ("self.rays[self.n].hit = self.rays[self.n].hit + 1", "ld32 ld32 mul shl ld32 add_i32 st32"),
])  # fmt: skip
def test_members_of_records_lie_at_offsets_that_are_known(body, listing):
    code = code_of(body, "rays: InOut[Vector[Ray]]\ny: Output[Vector[FLOAT]]\nn: INT", prelude=RAY)
    assert [" ".join(names(run)) for run in code.runs] == [listing]


@pytest.mark.parametrize(("count", "reloads"), [(3, 0), (4, 0), (5, 2), (6, 4)])
def test_main_registers_beyond_eleven_are_loaded_again_from_the_stack(count, reloads):
    """Pointers and values of so many vectors, the variable and its step, and for a moment what the end of a round compares."""
    fields = "".join(f"k{each}: INT\ny{each}: Output[Vector[INT]]\n" for each in range(count)) + "n: INT"
    kept = "".join(f"k{each} = self.k{each}\n" for each in range(count))
    stores = "".join(f"\n    self.y{each}[0] = k{each}" for each in range(count))
    code = code_of(f"{kept}n = self.n\nfor i in range(0, 9, n):{stores}", fields)
    assert names(deepest(code)).count("ld32 (stack)") == reloads


def test_a_run_is_as_deep_as_there_are_loops_around_it():
    body = "for i in range(7):\n    for j in range(7):\n        self.x[i] += self.x[j]"
    assert [run.depth for run in code_of(body, "x: InOut[Vector[FLOAT]]").runs] == [0, 1, 2, 1, 0]


def test_what_a_part_may_have_set_is_in_a_register_behind_it():
    """A part that may be left early: behind it the compiler cannot take what is set at its end for a constant."""
    typed = codelet_of(vertex("t = self.n\nif self.n > 3:\n    t = 5\nself.n = t + 1", fields="n: INT")).typed
    (choice,) = (statement for statement in typed.body if isinstance(statement, IfElse))
    left = IfElse(choice.condition, (Leave(),), (), choice.where)
    body = tuple(Once((left, *choice.then)) if statement is choice else statement for statement in typed.body)
    listing = [name for run in compiled(evolve(typed, body=body), TARGETS["ipu2"]).runs for name in names(run)]
    assert listing == ["ld32", "less_i32", "brz", "setzi", "add_i32", "st32"]


def test_the_bound_of_a_loop_with_a_function_of_software_has_the_rest_of_it_on_vectors():
    product = "self.x[i] * self.x[i] + 1.0"
    body = "for i in range(len(self.x)):\n    self.x[i] = " + " * ".join([f"({product})"] * 3) + " * {}(self.x[i])"
    bounds = {}
    for name in ("math.erf", "abs"):
        code = code_of(body.format(name), "x: InOut[Vector[FLOAT]]")
        (loop,) = code.loops
        run = code.runs[loop.code.first]
        bounds[name] = loop.price.bound / 2 if loop.price is not None else run.bound
    assert bounds["math.erf"] == pytest.approx(bounds["abs"] + 41, abs=2)


def test_an_operation_on_vectors_is_a_call_at_the_end_of_its_run_with_its_numbers_in_registers():
    body = "ipu.multiply_accumulate(self.out, self.a, self.b, self.n, self.m, 8)\nself.n = self.m"
    fields = "out: InOut[Vector[FLOAT]]\na: Input[Vector[FLOAT]]\nb: Input[Vector[FLOAT]]\nn: INT\nm: INT"
    first, second = code_of(body, fields).runs
    assert names(first) == ["ld32", "ld32", "call"]
    assert names(second) == ["st32"]
    *loads, call = (instruction for bundle in first.bundles for instruction in bundle.instructions)
    assert list(dict.fromkeys(call.reads)) == [load.result for load in loads]


def test_nothing_behind_an_assertion_is_done_before_it_or_beside_it():
    fields = "y: Input[Vector[FLOAT]]\nn: INT\nt: FLOAT"
    (run,) = code_of("t = self.t * 2.0\nassert self.n > 3, 'small'\nself.t = t * 3.0", fields).runs
    bundles = [" ".join(instruction.name for instruction in bundle.instructions) for bundle in run.bundles]
    assert bundles == ["ld32 or", "mul_f32 ld32", "less_i32", "brz", "or", "mul_f32", "st32"]
    sums = "t = 0.0\nfor i in range(7):\n{}    t += self.y[2]\nself.t = t"
    listings = [names(deepest(code_of(sums.format(text), fields))) for text in ("", "    assert self.n > i, 'small'\n")]
    assert ["ld32" in listing for listing in listings] == [False, True]


def test_many_pointers_move_by_one_distance_that_is_kept_in_a_register():
    """The accesses of a row go through its pointer; those in front of the first one have a sum of their own."""
    code = compiled_code(AlievPanfilov, "ipu2")
    before, inner = (names(run) for run in code.runs[1:3])
    assert (before.count("mov"), inner.count("add"), inner.count("ld32 (stack)")) == (1, 3, 1)


@pytest.mark.parametrize(("pointers", "together"), [(2, False), (6, False), (7, True)])
def test_pointers_move_by_one_distance_from_seven_on(pointers, together):
    """The compiler tries four forms of each, and of the count of rounds, up to 65,535 combinations."""
    vectors = [f"x{k}" for k in range(pointers - 1)]
    body = f"for i in range(self.n):\n    self.y[i] = {' + '.join(f'self.{name}[i]' for name in vectors)}"
    fields = [*(f"{name}: Input[Vector[FLOAT]]" for name in vectors), "y: Output[Vector[FLOAT]]", "n: INT"]
    assert ("mov" in names(code_of(body, "\n".join(fields)).runs[0])) == together


@pytest.mark.parametrize(("unneeded", "behind"), [("", 1), ("    v = self.x0[i + 1]\n", 2)])
def test_accesses_read_their_pointer_and_the_distance_or_one_sum_of_both(unneeded, behind):
    """What lies in front of the first access of a pointer reads the sum, even where that access itself is left out."""
    vectors = [f"x{k}" for k in range(6)]
    total = " + ".join(f"self.{name}[i]" for name in vectors)
    body = f"for i in range(self.n):\n{unneeded}    self.y[i] = {total} + self.x0[i - 1]"
    fields = "\n".join([*(f"{name}: Input[Vector[FLOAT]]" for name in vectors), "y: Output[Vector[FLOAT]]", "n: INT"])
    inner = [each for bundle in deepest(code_of(body, fields)).bundles for each in bundle.instructions]
    ((distance,),) = (each.reads for each in inner if each.name == "add" and len(each.reads) == 1)
    (addition,) = (each for each in inner if each.name == "add" and len(each.reads) == 2)
    accesses = [each for each in inner if each.access is not None]
    assert distance in addition.reads
    assert addition.result.words == 1
    assert [addition.result in each.reads for each in accesses].count(True) == behind
    assert all((addition.result in each.reads) != (distance in each.reads) for each in accesses)
    assert not any(addition.result in each.reads and addition.reads[0] in each.reads for each in accesses)


@pytest.mark.parametrize(("numbers", "reloads"), [(2, 0), (3, 2)])
def test_the_distance_of_many_pointers_takes_one_register(numbers, reloads):
    """Eleven have seven pointers, the distance, two numbers and what is made; a third number goes, and one for its reload."""
    vectors, made, used = (f"x{k}: Input[Vector[FLOAT]]" for k in range(6)), "", "self.z[i]"
    for k in range(numbers):
        made, used = f"{made}k{k} = self.m{k} * 3\n", f"({used} {'+^'[k % 2]} k{k})"
    total = " + ".join(f"self.x{k}[i]" for k in range(6))
    body = f"{made}t = 0.0\nfor i in range(self.n & 4095):\n    t += {total}\n    self.z[i] = {used}\nself.t = t"
    fields = [*vectors, "z: InOut[Vector[INT]]", "t: FLOAT", "n: INT", *(f"m{k}: INT" for k in range(numbers))]
    before, inner, *_ = (names(run) for run in code_of(body, "\n".join(fields)).runs)
    assert "mov" in before
    assert inner.count("ld32 (stack)") == reloads
