"""Items that are slow beside those that are marked so stand in a list, which names tests that there are."""

import ast

import pytest
from slow_items import AT_ALL_TIMES, LIST, TESTS, dear, items_of_run, pytest_collection_modifyitems, slow_items


def test_the_list_names_tests_that_there_are():
    names = LIST.read_text().splitlines()
    assert names == sorted(set(names))
    assert not [name for name in names if name.startswith(AT_ALL_TIMES)]
    unknown, known = [], {}
    for name in names:
        file, _, item = name.partition("::")
        if file not in known:
            path = TESTS.parent / file
            tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
            known[file] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if item.partition("[")[0].rpartition("::")[2] not in known[file]:
            unknown.append(name)
    assert not unknown, "take these lines out of tests/slow_items.txt, or give the tests' new names"


def test_items_of_the_list_are_marked_and_no_others(request):
    class Item:
        def __init__(self, nodeid):
            self.nodeid, self.marks = nodeid, []

        def add_marker(self, name):
            self.marks.append(name)

    listed = min(slow_items())
    items = [Item(listed), Item(f"{listed}_too"), Item(request.node.nodeid)]
    pytest_collection_modifyitems(items)
    assert [item.marks for item in items] == [["slow"], [], []]
    assert request.node.nodeid == "tests/test_slow_items.py::test_items_of_the_list_are_marked_and_no_others"


def test_what_takes_five_times_the_mean_is_slow_but_for_what_runs_at_all_times_and_one_set_of_each_test(tmp_path):
    cases = [("tests.test_sets", f"test_{number}", 1.0) for number in range(96)]
    cases += [
        ("tests.test_sets", "test_dear[a.b-1]", 20.0),
        (AT_ALL_TIMES[1].removesuffix(".py").replace("/", "."), "test_x", 30.0),
    ]
    cases += [("tests.engine.test_streams.TestGroup", "test_y", 14.0), ("tests.test_sets", "test_nearly", 8.0)]
    cases += [("tests.test_sets", f"test_all_dear[{number}]", 12.0 + number) for number in range(2)]
    text = "".join(f'<testcase classname="{where}" name="{name}" time="{time}"/>' for where, name, time in cases)
    (tmp_path / "run.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    items = list(items_of_run(tmp_path / "run.xml"))
    assert items[0] == ("tests/test_sets.py::test_0", 1.0)
    found = ["engine/test_streams.py::TestGroup::test_y", "test_sets.py::test_all_dear[1]", "test_sets.py::test_dear[a.b-1]"]
    assert dear(items) == [f"tests/{name}" for name in found]
    with pytest.raises(ValueError, match=r"no file of elsewhere\.test_it"):
        list(items_of_run(_of_another_project(tmp_path)))


def _of_another_project(directory):
    path = directory / "other.xml"
    path.write_text('<testsuite><testcase classname="elsewhere.test_it" name="test" time="1"/></testsuite>')
    return path
