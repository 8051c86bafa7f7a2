"""A sweep calls a function for many cases, here or elsewhere, and gives a table; what fails has its reason there."""

import builtins
import csv
import io
import json
import os
import threading
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from engine_builder import Add, Bench
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import InvalidOption, MissingFeature, PoplarTypeError, UnknownField, predict, sweep
from pypoplar.program import Repeat


def adding(rounds, items=1):
    """A prediction of a few additions; an error of our own for rounds below 0."""
    bench = Bench()
    x = bench.variable("x", [0])
    return predict(bench.graph, Repeat(rounds, bench.execute(Add, value=x[0], amount=1)), items=items)


def half(number):
    if number == 13:
        os._exit(3)
    return 12 // number if number < 10 else number


def unsendable(number):
    return threading.Lock() if number else number


def test_each_case_is_called_with_its_arguments_in_order():
    called = []
    table = sweep(lambda **case: called.append(case), [{"a": 1}, {"b": 2, "a": 0}, {}])
    assert called == [{"a": 1}, {"b": 2, "a": 0}, {}]
    assert [row.case for row in table.rows] == called
    assert len(table) == 3


def test_predictions_become_columns_and_leave_their_reports():
    table = sweep(adding, [{"rounds": 2}, {"rounds": 4}])
    first, second = (row.result for row in table.rows)
    assert (first.report, second.report) == (None, None)
    assert second.step_cycles == 2 * first.step_cycles
    values = table.rows[1].values()
    assert values["items_per_second"] == second.items_per_second
    assert values["rounds"] == 4
    assert values["bound_by"] == "sync"
    assert values["fits"] is True
    assert "failed" not in table.columns


def test_failed_cases_have_their_reason_and_the_others_their_results():
    table = sweep(adding, [{"rounds": 1}, {"rounds": -1}, {"rounds": 1, "items": 0}, {"round": 1}])
    good, negative, none, unknown = table.rows
    assert good.failed == ""
    assert negative.failed.startswith("ControlProgramError: ")
    assert none.failed == "InvalidOption: items must be an integer of at least 1, got 0"
    assert "unexpected keyword argument 'round'" in unknown.failed
    assert table.columns[-1] == "failed"
    assert none.failed in str(table)
    assert repr(table) == "<Sweep of 4 cases, 3 failed>"


@pytest.mark.no_cover
def test_processes_give_what_one_gives():
    cases = [{"rounds": rounds} for rounds in (1, -1, 3)]
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert sweep(adding, cases, processes).to_json() == sweep(adding, cases).to_json()


@examples(30)
@given(numbers=st.lists(st.integers(-2, 9), min_size=1))
def test_threads_give_what_one_gives(numbers):
    cases = [{"number": number} for number in numbers]
    with ThreadPoolExecutor(3) as threads:
        assert sweep(half, cases, threads) == sweep(half, cases)


def test_what_cannot_be_pickled_is_refused_before_anything_is_called(tmp_path):
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        with pytest.raises(PoplarTypeError, match=r"'number' of case 1 cannot be pickled for another process \("):
            sweep(half, [{"number": 1}, {"number": threading.Lock()}], processes)
        with pytest.raises(PoplarTypeError, match="the function cannot be pickled for another process"):
            sweep(lambda number: number, [{"number": 1}], processes)
        assert not processes._processes


@pytest.mark.no_cover
def test_a_result_that_does_not_arrive_is_a_failed_case():
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        sent, lost = sweep(unsendable, [{"number": 0}, {"number": 1}], processes).rows
    assert (sent.result, sent.failed) == (0, "")
    assert "cannot pickle" in lost.failed
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        (ended,) = sweep(half, [{"number": 13}], processes).rows
    assert ended.failed.startswith("BrokenProcessPool: ")


def test_an_interrupt_takes_back_what_has_not_begun():
    futures = []

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments):
            future = Future()
            if not futures:
                future.set_exception(KeyboardInterrupt())
            futures.append(future)
            return future

    with Interrupted(1) as threads, pytest.raises(KeyboardInterrupt):
        sweep(half, [{"number": 1}, {"number": 2}, {"number": 3}], threads)
    assert [future.cancelled() for future in futures] == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, [{}]), PoplarTypeError, "expected a function to call for each case, got 3"),
        ((half, []), InvalidOption, "there are no cases"),
        ((half, {"number": [1, 2]}), PoplarTypeError, "the cases are a list of dicts"),
        ((half, [{"number": 1}, 2]), PoplarTypeError, "case 1 is a dict of arguments by name, got 2"),
        ((half, [{1: 2}]), PoplarTypeError, "case 0 is a dict of arguments by name"),
        ((half, {1, 2}), PoplarTypeError, "the cases of a sweep"),
        ((half, [{"number": 1}], 2), PoplarTypeError, "an executor is one of concurrent.futures, such as .*, got 2"),
        ((half, [{"number": 1}], ProcessPoolExecutor), PoplarTypeError, "an executor is one of concurrent.futures"),
    ],
)
def test_what_is_no_sweep_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        sweep(*arguments)


def test_the_table_is_written_as_text_for_programs(tmp_path):
    table = sweep(adding, [{"rounds": 1}, {"rounds": -1}])
    text = table.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == text
    good, bad = csv.DictReader(io.StringIO(text))
    assert float(good["items_per_second"]) == table.rows[0].result.items_per_second
    assert (good["failed"], bad["items_per_second"]) == ("", "")
    good, bad = json.loads(json.dumps(table.to_json()))
    assert good == {"case": {"rounds": 1}, "result": table.rows[0].result.to_json(), "failed": None}
    assert (bad["result"], bad["failed"]) == (None, table.rows[1].failed)


def test_what_json_cannot_hold_is_text():
    (row,) = sweep(lambda kind: {"kinds": (kind, 1)}, [{"kind": int}]).to_json()
    assert row == {"case": {"kind": "<class 'int'>"}, "result": {"kinds": ["<class 'int'>", 1]}, "failed": None}


def test_a_result_called_like_an_argument_has_a_column_of_its_own():
    table = sweep(lambda size: {"size": 2 * size}, [{"size": 3}])
    assert table.rows[0].values() == {"size": 3, "result.size": 6}


def test_notebooks_show_the_table_in_which_values_are_text():
    html = sweep(lambda name: name, [{"name": "<b>bold"}])._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert "<b>bold" not in html


def test_a_plot_has_a_line_for_each_of_the_other_arguments():
    pytest.importorskip("plotly")
    cases = [{"batch": batch, "clock": clock, "kind": "same"} for clock in (1, 2) for batch in (1, 2, 0)]
    table = sweep(lambda batch, clock, kind: {"items_per_second": clock / batch}, cases)
    first, second = table.plot().data
    assert (first.name, list(first.x), list(first.y)) == ("clock=1", [1, 2], [1.0, 0.5])
    assert (second.name, list(second.y)) == ("clock=2", [2.0, 1.0])
    assert [line.name for line in table.plot(x="clock").data] == ["batch=1", "batch=2"]
    with pytest.raises(UnknownField, match="the sweep has no column 'bach'; did you mean 'batch'"):
        table.plot(x="bach")
    with pytest.raises(UnknownField, match="no column 'second'"):
        table.plot(y="second")


def test_a_plot_without_its_library_says_what_installs_it(monkeypatch):
    real = builtins.__import__

    def without_plotly(name, *arguments):
        if name.startswith("plotly"):
            raise ModuleNotFoundError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_plotly)
    with pytest.raises(MissingFeature, match=r"SweepTable.plot needs plotly: pip install"):
        sweep(half, [{"number": 1}]).plot(y="result")
