"""The codelets in the documentation translate and mean what it says."""

import re
from pathlib import Path

import numpy as np
import pytest
from codelet_rig import codelet_of, module_from, run

import pypoplar
from pypoplar import Vertex, listing
from pypoplar.codelet.cost.compiled_code import compiled
from pypoplar.codelet.operations.table import OPERATIONS
from pypoplar.codelet.registry import CodeletRegistry, Template, collect
from pypoplar.target import Target
from pypoplar.types import HALF

DOCUMENT = Path(__file__).parents[2] / "docs" / "codelets.md"


@pytest.fixture(scope="module")
def names():
    return module_from("\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)))


def test_the_documents_codelets_translate(names):
    classes = [
        one for one in names.values() if isinstance(one, type) and issubclass(one, Vertex) and one.__module__ == names["__name__"]
    ]
    assert {one.__name__ for one in classes} == {"Scale", "ScalePairs", "BinaryOp", "Trace", "Clamp", "Dense", "Assembler"}
    for cls in classes:
        for found in collect(cls):
            assert (found.instance((HALF,)) if isinstance(found, Template) else found).typed.body


def test_the_documents_instances_have_their_names(names):
    registry = CodeletRegistry()
    registry.add([*collect(names["Add"]), *collect(names["Largest"])])
    assert run(registry.find("mine::BinaryOp<add,float>")[1], left=[1, 2], right=[3, 5])["left"] == [4, 7]
    assert run(registry.find("mine::BinaryOp<max,int>")[1], left=[1, 7], right=[3, 5])["left"] == [3, 7]


def test_the_documents_clamp_clamps(names):
    ran = run(names["Clamp"], data=[-1, 0.5, 9], longest=0, rows=[[1], [1, 2]])
    assert (ran["data"], ran["longest"]) == ([0, 0.5, 6], [2])
    assert run(names["Clamp"], data=np.zeros(0), longest=0, rows=[]).fault[0] == 6


def test_the_documents_layer_multiplies(names):
    codelet = collect(names["Dense"])[0].instance((HALF,))
    x, weights = np.arange(14.0).reshape(7, 2), np.arange(6.0).reshape(2, 3)
    found = run(codelet, out=np.ones(21), x=x.ravel(), weights=weights.ravel(), columns=3)["out"]
    assert found == (1 + x @ weights).ravel().tolist()


def test_the_documents_records_are_traced(names):
    rays = np.zeros(3, names["Ray"].dtype)
    rays["origin"][:, 2] = [1, 2, 3]
    log = np.zeros(2, rays.dtype)
    log["kind"] = 5, 7
    ran = run(names["Trace"], rays=rays.view(np.uint8), log=log.view(np.uint8), end=log.nbytes)
    traced = ran.fields["rays"].view(rays.dtype)
    assert (traced["origin"][:, 2].tolist(), traced["hit"].tolist(), traced["kind"].tolist()) == ([2, 3, 4], [0, 0, 1], [7, 0, 0])
    assert run(names["Trace"], rays=rays.view(np.uint8), log=log.view(np.uint8)[:0], end=0).fault is None


def test_the_documents_estimator_counts(names):
    class Introspector:
        def fieldSize(self, name):
            return 5

    assert codelet_of(names["Assembler"]).estimator(Introspector()) == 20


def test_the_documents_listing_is_that_of_its_loop(names):
    (shown,) = re.findall(r"```text\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    first = listing(names["Assembler"]).index("      -- on vectors")
    assert without_numbers(listing(names["Assembler"])[first:]).startswith(without_numbers(shown))


def without_numbers(text):
    """A listing without the numbers of its lines, which are those of a file."""
    return re.sub(r"^ *\d+ (?=\S)", "", text, flags=re.MULTILINE)


PLACES = """
from pypoplar import FLOAT, INT, UNSIGNED_CHAR, Array, InOut, Record, Vector, Vertex


class Ray(Record):
    kind: UNSIGNED_CHAR
    origin: Array[FLOAT, 3]


class Test(Vertex):
    rays: InOut[Vector[Ray]]
    x: InOut[Vector[FLOAT]]
    n: INT

    def compute(self):
        {}
"""
LOOP = "for i in range(0, self.n & 7):\n            {} += 1.0"


@pytest.mark.parametrize(
    ("record", "float", "more"),
    [
        ("self.rays[3].origin[2] += 1.0", "self.x[3] += 1.0", 0),
        ("self.rays[self.n].origin[2] += 1.0", "self.x[self.n] += 1.0", 2),
        (LOOP.format("self.rays[i].origin[2]"), LOOP.format("self.x[2 * i]"), 0),
    ],
    ids=["literal", "computed", "along a loop"],
)
def test_the_place_of_a_record_costs_what_the_document_says(record, float, more):
    def slots(body):
        code = compiled(codelet_of(module_from(PLACES.format(body))["Test"]).typed, Target.of_preset("bow"))
        return max(code.runs, key=lambda run: run.depth).slots

    assert slots(record) - slots(float) == more


def price_rows() -> list[tuple[str, str, list[str]]]:
    """From the tables of prices: the calls of a row, the type of a column, and what stands there."""
    rows, types = [], []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "slots":
            types = cells[1:]
        elif not line.startswith("|"):
            types = []
        elif types and not cells[0].startswith("-"):
            rows += [(cells[0], type, re.findall(r"[\d,]*\d", cell)) for type, cell in zip(types, cells[1:], strict=True)]
    return rows


@pytest.mark.parametrize(("calls", "type", "prices"), price_rows())
def test_prices_of_operations_are_those_of_their_rows(calls, type, prices):
    written = [re.sub(r"^x (\S+) y$", r"\1", call) for call in re.findall(r"`([^`]+)`", calls)]
    assert len(written) == len(prices)
    code = getattr(pypoplar, type).code
    for call, price in zip(written, prices, strict=True):
        (operation,) = (one for one in OPERATIONS.values() if call in one.row.calls and one.type == code)
        assert operation.price("ipu2").slots == int(price.replace(",", "")), call


def test_tables_of_prices_have_every_function_of_software():
    calls = {call.strip("`") for row, _, _ in price_rows() for call in re.findall(r"`[^`]+`", row)}
    dear = {
        call
        for one in OPERATIONS.values()
        for call in one.row.calls
        if call.startswith("math.") and one.price("ipu2").software and one.price("ipu2").slots >= 30
    }
    assert dear <= calls
    assert len(price_rows()) > 20
