"""Engine options: every known one is read, everything else is refused with a hint."""

import json

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pypoplar.options
from pypoplar import Engine, Graph, IPUModel
from pypoplar.errors import InvalidOption
from pypoplar.options import ENVIRONMENT, FLAG, NUMBER, OPTIONS, RENAMED, TEXT, EngineOptions, read_flag
from pypoplar.program import Sequence

SAMPLES = {FLAG: "true", NUMBER: "7", TEXT: "somewhere"}


def sample(option):
    return SAMPLES.get(option.kind) or option.kind.allowed.split("'")[1]


def test_every_attribute_is_set_by_one_option():
    attributes = [one.attribute for one in OPTIONS if one.attribute]
    assert len(attributes) == len(set(attributes))
    assert set(attributes) == {one.name for one in attrs.fields(EngineOptions)} - {"given"}
    assert len({one.name for one in OPTIONS}) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda one: one.name)
def test_every_option_is_accepted_and_reaches_its_attribute(option):
    parsed = EngineOptions.parse({option.name: sample(option)}, {})
    assert parsed.given == ((option.name, option.kind.read(sample(option))),)
    if option.attribute:
        assert getattr(parsed, option.attribute) == option.kind.read(sample(option))


def test_nothing_set_gives_the_defaults():
    parsed = EngineOptions.parse(None, {})
    assert parsed == EngineOptions()
    assert parsed.races == "regions"
    assert parsed.uninitialised == "poison"
    assert not parsed.run_out_of_memory
    for option in OPTIONS:
        if option.attribute:
            assert getattr(parsed, option.attribute) == option.default
        else:
            assert option.default is None


def test_values_may_be_strings_or_pythons_own():
    texts = EngineOptions.parse({"pypoplar.threads": "0x2", "debug.floatPointOpException": "TRUE"}, {})
    values = EngineOptions.parse({"pypoplar.threads": np.int32(2), "debug.floatPointOpException": True}, {})
    assert texts == values
    assert texts.threads == 2
    assert texts.floating_point_exceptions is True


def test_parsed_options_are_not_parsed_again(monkeypatch):
    parsed = EngineOptions.parse({"pypoplar.threads": 1}, {})
    monkeypatch.setenv(ENVIRONMENT, "{")
    assert EngineOptions.parse(parsed) is parsed


def test_an_engine_parses_its_options_once(monkeypatch):
    parses = []
    monkeypatch.setattr(pypoplar.options, "_environment_options", lambda environment: parses.append(environment) or {})
    Engine(Graph(IPUModel("tiny").createDevice()), Sequence(), {"pypoplar.progress": "off"})
    assert len(parses) == 1


def test_pairs_do_for_a_dict():
    assert EngineOptions.parse([("pypoplar.threads", 1)], {}).threads == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pypoplar.thread", "pypoplar.threads"),
        ("pypoplar.uninitialized", "pypoplar.uninitialised"),
        ("debug.Instrument", "debug.instrument"),
        ("instrument", "debug.instrument"),
        ("autoReport.al", "autoReport.all"),
        ("autoreport.all", "autoReport.all"),
        ("opt.hostSyncTimeout", "target.hostSyncTimeout"),
        ("hostSyncTimeOut", "target.hostSyncTimeout"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(name, hint):
    with pytest.raises(InvalidOption, match=f"did you mean '{hint}'"):
        EngineOptions.parse({name: "true"}, {})


def test_an_option_like_no_other_is_refused_with_a_pointer_to_the_list():
    with pytest.raises(InvalidOption, match=r"docs/options\.md"):
        EngineOptions.parse({"zzzzzzzz": 1}, {})
    with pytest.raises(InvalidOption, match="no engine option '7'"):
        EngineOptions.parse({7: 1}, {})


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_name_is_refused_with_the_new(old):
    with pytest.raises(InvalidOption, match=f"now called '{RENAMED[old]}'"):
        EngineOptions.parse({old: "0x200"}, {})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("pypoplar.threads", "-1", "integer of at least 0"),
        ("pypoplar.threads", "two", "integer of at least 0"),
        ("pypoplar.threads", True, "integer of at least 0"),
        ("pypoplar.threads", 1.5, "integer of at least 0"),
        ("pypoplar.threads", None, "integer of at least 0"),
        ("debug.instrument", "yes", "'true' or 'false'"),
        ("debug.instrument", 1, "'true' or 'false'"),
        ("pypoplar.races", "element", "'regions' or 'elements'"),
        ("pypoplar.races", True, "'regions' or 'elements'"),
        ("autoReport.directory", 3, "a text"),
    ],
)
def test_an_ill_formed_value_is_refused_with_what_is_allowed(name, value, allowed):
    with pytest.raises(InvalidOption, match=f"'{name}' must be .*{allowed}"):
        EngineOptions.parse({name: value}, {})


def test_the_environment_overrides_the_program(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, '{"pypoplar.threads": "3", "pypoplar.races": "elements"}')
    parsed = EngineOptions.parse({"pypoplar.threads": 1, "pypoplar.cycle_limit": 5})
    assert (parsed.threads, parsed.races, parsed.cycle_limit) == (3, "elements", 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"pypoplar.threads": "x"}', r"from POPLAR_ENGINE_OPTIONS.*integer"),
        ('{"pypoplar.threads": {}}', r"from POPLAR_ENGINE_OPTIONS.*integer"),
        ('{"nope": 1}', r"no engine option 'nope' \(from POPLAR_ENGINE_OPTIONS\)"),
    ],
)
def test_an_ill_formed_environment_is_named(text, message):
    with pytest.raises(InvalidOption, match=message):
        EngineOptions.parse({}, {ENVIRONMENT: text})


def test_an_empty_environment_says_nothing():
    assert EngineOptions.parse({}, {ENVIRONMENT: " "}) == EngineOptions()


@given(st.lists(st.sampled_from(OPTIONS), unique=True))
def test_json_brings_options_back(options):
    parsed = EngineOptions.parse({one.name: sample(one) for one in options}, {})
    assert EngineOptions.from_json(json.loads(json.dumps(parsed.to_json()))) == parsed


def test_changed_options_keep_the_rest():
    parsed = EngineOptions.parse({"pypoplar.threads": 1, "pypoplar.races": "elements"}, {}).changed({"pypoplar.threads": 2})
    assert (parsed.threads, parsed.races) == (2, "elements")


def test_options_are_values():
    assert hash(EngineOptions.parse({"pypoplar.threads": 1}, {})) == hash(EngineOptions.parse({"pypoplar.threads": 1}, {}))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        EngineOptions().threads = 2


def test_a_flag_is_read_by_itself():
    assert read_flag("showExecutionSteps", "true") is True
    with pytest.raises(InvalidOption, match="showExecutionSteps"):
        read_flag("showExecutionSteps", "maybe")


@pytest.mark.parametrize("options", ["true", 3, [("pypoplar.threads",)]])
def test_options_are_pairs(options):
    with pytest.raises(InvalidOption, match="a dict of names and values, got"):
        EngineOptions.parse(options, {})
