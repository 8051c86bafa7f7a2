"""What PopLibs declares, and what pypoplar has of it."""

import pytest

from pypoplar import MissingFeature, MissingMember, PoplarAttributeError, poplin, popnn, popops, poprand, poputil
from pypoplar.poputil.poplibs_names import Declaration, declarations, names_of


def test_every_line_of_the_file_is_read():
    lines = list(declarations())
    assert len(lines) > 800
    assert {line.kind for line in lines} == {"function", "class", "method", "enum", "fields", "values"}


def test_an_overload_has_its_arguments_in_order():
    reduce = [line for line in declarations() if line.name == "reduce"]
    assert reduce[1] == Declaration(
        "popops",
        "popops/Reduce.hpp",
        "function",
        "reduce",
        ("graph", "in", "dims", "params", "prog", "debugContext={}", "options={}"),
    )


def test_a_module_has_the_names_of_its_functions_and_of_the_modules_below():
    assert {"reduce", "Operation", "expr", "rearrange"} <= names_of("popops")
    assert {"_1", "_20", "Const", "UnaryOpType"} <= names_of("popops.expr")
    assert "Reduce" not in names_of("popops")


@pytest.mark.parametrize(("library", "name"), [(poputil, "poplibs_error")])
def test_a_name_of_poplibs_that_is_not_there_is_a_missing_feature_and_no_attribute(library, name):
    assert not hasattr(library, name)
    with pytest.raises(MissingMember, match=f"PopLibs has .*{name}, and pypoplar does not have it yet") as caught:
        getattr(library, name)
    assert isinstance(caught.value, MissingFeature)
    assert isinstance(caught.value, PoplarAttributeError)


def test_a_misspelt_name_is_no_missing_feature():
    with pytest.raises(PoplarAttributeError, match="did you mean 'addInPlace'") as caught:
        popops.addInplace
    assert not isinstance(caught.value, MissingFeature)


@pytest.mark.parametrize("library", [poplin, popnn, popops, poprand, poputil])
def test_every_public_name_of_a_library_is_there(library):
    assert [name for name in library.__all__ if not hasattr(library, name)] == []
