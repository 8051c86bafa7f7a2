"""The class keyword ``rounding="nearest"``: how it is said, what is refused, and where it stands in a file."""

import json

import pytest
from codelet_rig import codelet_of, module_from

from pypoplar import CodeletError, FileLoadError, PoplarTypeError
from pypoplar.codelet.language.source import CodeletSource

TEXT = """
from pypoplar import *

class Test(Vertex{}):
    x: Input[FLOAT]
    y: Output[HALF]
{}
    def compute(self):
        self.y = HALF(self.x)

class Derived(Test):
    pass
"""


def source_of(keyword="", attribute="", name="Test"):
    codelet = codelet_of(module_from(TEXT.format(keyword, attribute))[name])
    assert codelet.typed.always_nearest == codelet.source.always_nearest
    return codelet.source


def test_a_codelet_rounds_as_the_program_says_unless_its_class_or_a_base_says_nearest():
    assert not source_of().always_nearest
    assert source_of(', rounding="nearest"').always_nearest
    assert source_of(', rounding="nearest"', name="Derived").always_nearest


@pytest.mark.parametrize("value", ['"stochastic"', "True", "None", '""', "1"])
def test_another_rounding_is_refused_at_the_keyword(value):
    with pytest.raises(CodeletError, match='Test: rounding="nearest" rounds to the nearest HALF whatever') as refusal:
        source_of(f", rounding={value}")
    assert "class Test(Vertex, rounding=" in str(refusal.value)


def test_the_keyword_as_an_attribute_is_refused_and_a_number_of_that_name_is_a_constant():
    with pytest.raises(
        CodeletError, match=r"rounding is a keyword of the class, not an attribute: write class Test\(Vertex, round"
    ):
        source_of(attribute='    rounding = "nearest"')
    assert not source_of(attribute="    rounding = 3").always_nearest


def test_the_keyword_spelt_wrong_is_refused_with_the_nearest():
    with pytest.raises(PoplarTypeError, match="unknown keyword 'roundings'; did you mean 'rounding'"):
        source_of(', roundings="nearest"')


def test_the_keyword_is_saved_and_damage_to_it_is_refused():
    for keyword in ("", ', rounding="nearest"'):
        source = source_of(keyword)
        tree = json.loads(json.dumps(source.to_json()))
        assert CodeletSource.from_json(tree) == source
        for wrong in ("near", True, None, 0):
            with pytest.raises(FileLoadError):
                CodeletSource.from_json(tree | {"rounding": wrong})
        del tree["rounding"]
        with pytest.raises(FileLoadError):
            CodeletSource.from_json(tree)
