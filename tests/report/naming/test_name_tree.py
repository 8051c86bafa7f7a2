"""Names with slashes are paths: what stands under them adds up."""

from hypothesis import given
from hypothesis import strategies as st
from page_reports import compute, exchange, report, variables

from pypoplar.report.naming.name_tree import DEEPEST, name_tree, path_of, sums_below
from pypoplar.report.page.name_data import name_data

names = st.lists(st.sampled_from(["a", "b", "step1", "step2", "step30", "", "é"]), max_size=4).map("/".join)


def test_a_name_is_a_path():
    assert path_of("layer1/conv/fwd") == ("layer1", "conv", "fwd")
    assert path_of("//layer1//fwd/") == ("layer1", "fwd")
    assert path_of("") == path_of("/") == ("",)


def test_a_path_that_is_very_deep_ends_in_what_is_left():
    path = path_of("/".join("x" * 1000))
    assert len(path) == DEEPEST
    assert path[-1] == "/".join("x" * (1000 - DEEPEST + 1))


@given(st.lists(names))
def test_every_step_stands_under_the_path_of_its_name(step_names):
    steps = {number: compute(name, number, [1] * 4) for number, name in enumerate(step_names)}
    tree = name_tree(steps, report().compilation.loweredVariables)
    assert sorted(number for numbers in tree.steps for number in numbers) == list(steps)
    for node, numbers in enumerate(tree.steps):
        above, path = node, []
        while above > 0:
            assert tree.parent[above] < above
            path.insert(0, tree.name[above])
            above = tree.parent[above]
        assert all(path_of(steps[number].name) == tuple(path) for number in numbers)
    assert sums_below(tree.parent, [len(numbers) for numbers in tree.steps])[0] == len(steps)


def folds(*step_names):
    steps = {number: compute(name, number, [1] * 4) for number, name in enumerate(step_names)}
    tree = name_tree(steps, report().compilation.loweredVariables)
    return dict(zip(tree.name, tree.folds(), strict=True))


def test_siblings_that_differ_in_numbers_only_fold():
    assert folds("step0/a", "step1/a", "step2/b", "other") == {
        "": "",
        "step0": "step*",
        "a": "",
        "step1": "step*",
        "step2": "step*",
        "b": "",
        "other": "",
    }


def test_a_few_siblings_and_those_of_other_parents_do_not_fold():
    assert set(folds("step0", "step1").values()) == {""}
    assert set(folds("x/step0", "x/step1", "y/step2", "y/step3").values()) == {""}
    assert set(folds("step*", "a", "b").values()) == {""}


def test_a_name_without_its_last_number_folds_with_those_that_have_one():
    assert folds("inc", "inc_1", "inc_2", "income")["inc"] == "inc_*"
    assert folds("inc", "inc1", "inc2")["inc"] == "inc*"
    assert folds("inc", "inc_1") == {"": "", "inc": "", "inc_1": ""}
    assert folds("conv3x3", "conv3x3_1", "conv5x5")["conv5x5"] == "conv*x*_*"


def test_what_is_below_names_that_fold_folds_together():
    tree = name_tree({n: compute(f"s{n}/a{n}", n, [1] * 4) for n in range(3)}, report().compilation.loweredVariables)
    assert tree.folded_paths() == [(), *[("s*",), ("s*", "a*")] * 3]
    assert tree.folds() == ["", *["s*", "a*"] * 3]


def test_nodes_have_the_time_bytes_and_memory_of_their_own_names():
    move = exchange("layer/move", 1, [5, 4, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0], times=3)
    held = variables(("layer/w", True, -1, -1), ("layer/move", False, 0, 1), places=[{0: 30, 1: 2}, {2: 20}])
    data = name_data(report(compute("layer/work", 0, [100] * 4, sync=7), move, variables=held))
    rows = {name: place for place, name in enumerate(data["name"])}
    assert data["parent"] == [-1, 0, 1, 1, 1]
    columns = ("compute", "sync", "exchange", "sent", "executions", "vertices", "memory", "steps")
    assert [data[column][rows["work"]] for column in columns] == [100, 7, 0, 0, 1, 4, 0, [0]]
    assert [data[column][rows["move"]] for column in columns] == [0, 0, 5, 8, 3, 0, 20, [1]]
    assert [data[column][rows["w"]] for column in columns] == [0, 0, 0, 0, 0, 0, 32, []]
    assert [data[column][rows["layer"]] for column in columns] == [0, 0, 0, 0, 0, 0, 0, []]


def test_memory_that_the_report_does_not_have_is_absent_and_not_0():
    assert name_data(report(compute("work", 0, [1] * 4)))["memory"] is None
    assert name_data(report()) is None
