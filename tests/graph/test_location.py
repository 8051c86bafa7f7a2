"""Where the user's code made something."""

import contextlib
import linecache

import pytest

import pypoplar
from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.errors import PoplarError, PoplarTypeError
from pypoplar.graph.location import LocationTable, caller_location
from pypoplar.program import Copy
from pypoplar.tracebacks import is_ours


def here(table):
    return table.note(depth=1)


def test_a_line_is_the_callers_even_in_a_long_expression():
    table = LocationTable()
    number = here(
        table,
    )
    location = table.location(number)
    assert location.file == __file__
    assert "table.note" in linecache.getline(location.file, location.line)
    assert location.function == "here"


def test_one_place_has_one_number():
    table = LocationTable()
    numbers = {here(table) for _ in range(100)}
    assert numbers == {0}
    assert len(table) == 1


def test_frames_of_the_package_are_passed_over():
    table = LocationTable()
    inside = is_ours.__code__.co_filename
    code = compile("def call(function):\n    return function()", inside, "exec")
    names = {}
    exec(code, names)
    location = names["call"](caller_location)
    assert location.file == __file__
    number = names["call"](lambda: names["call"](lambda: table.note(depth=2)))  # the lambda is the user's
    assert table.location(number).file == __file__
    assert line_text(location) == f"{__file__}:{location.line}"


def test_text_run_with_exec_is_the_users():
    names = {"caller_location": caller_location}
    exec(compile("\n\nplace = caller_location()", "<cell 3>", "exec"), names)
    assert (names["place"].file, names["place"].line) == ("<cell 3>", 3)


def test_tutorials_that_ship_with_the_package_are_user_code():
    package = is_ours.__code__.co_filename.rpartition("tracebacks")[0]
    assert is_ours(package + "popops/add.py")
    assert not is_ours(package + "_resources/tutorials/tut1.py")
    assert not is_ours("/somewhere/else.py")


def test_what_is_made_within_a_location_has_its_line():
    table = LocationTable()
    before = table.note(1)
    with pypoplar.location("network.txt", 12, "layer"):
        numbers = [table.note(1) for _ in range(2)]
        made = caller_location()
        with pypoplar.location("network.txt", 13):
            inner = caller_location()
    assert numbers[0] == numbers[1] != before
    assert table.location(numbers[0]) == made == Location("network.txt", 12, "layer")
    assert inner == Location("network.txt", 13, "")
    assert caller_location().file == table.location(before).file == __file__


def test_a_location_is_over_after_an_error():
    with contextlib.suppress(ZeroDivisionError), pypoplar.location("network.txt", 1):
        raise ZeroDivisionError
    assert caller_location().file == __file__


def test_variables_and_programs_have_the_line_of_a_location():
    graph = pypoplar.Graph(pypoplar.IPUModel("tiny").createDevice())
    with pypoplar.location("network.txt", 12):
        x = graph.addVariable(pypoplar.FLOAT, [3], "lost")
        program = Copy(x, x)
    assert program.location == Location("network.txt", 12, "")
    with pytest.raises(PoplarError, match=r"^network\.txt:12: variable .lost. has no tile"):  # it is on no tile
        pypoplar.compileGraph(graph, program)


@pytest.mark.parametrize("given", [(3, 4), ("a", "4"), ("a", 0), ("a", True), ("a", 1, None)])
def test_a_location_is_a_file_and_a_number(given):
    with pytest.raises(PoplarTypeError, match="location takes"), pypoplar.location(*given):
        pass
