"""Where the user's code made something."""

import linecache

from pypoplar.codelet.ir.terms import line_text
from pypoplar.graph.location import LocationTable, caller_location
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
