"""The pages of docs/ that are tables of the code agree with it."""

import importlib.util
import re
from enum import Enum
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_tables():
    spec = importlib.util.spec_from_file_location("documents_tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(load_tables().PAGES))
def test_a_page_is_what_the_code_says(name):
    expected = load_tables().PAGES[name]()
    assert (ROOT / name).read_text(encoding="utf-8") == expected, f"run: python docs/tables.py (to make {name} anew)"


def test_what_is_there_of_poplibs_has_its_forms_but_those_of_fp8_and_of_libraries_to_come():
    tables = load_tables()
    differing = tables.poplibs_table.differences()
    to_come = {name for name in differing if name.startswith(("poplin.", "popnn.")) or "metadata" in name}
    assert differing.keys() - to_come == set()


def test_every_error_can_be_imported_from_pypoplar():
    import pypoplar
    from pypoplar import errors

    assert [one.__name__ for one in errors.TABLE if getattr(pypoplar, one.__name__, None) is not one] == []


def test_every_error_has_an_example_but_those_that_others_are_derived_from():
    tables = load_tables()
    bases = {"PoplarError", "PoplarRuntimeError"}
    assert {one.__name__ for one in tables.errors.TABLE} - tables.error_examples.EXAMPLES.keys() == bases


CALLS = ROOT / "docs" / "library-calls.md"


@pytest.fixture(scope="module")
def library_calls():
    return load_tables().library_calls


def test_the_links_of_the_page_of_calls_lead_to_its_headings():
    text = CALLS.read_text(encoding="utf-8")
    headings = [re.sub(r"[^\w\- ]", "", line).replace(" ", "-").lower() for line in re.findall(r"^##+ (.*)$", text, re.M)]
    once = [heading for heading in headings if headings.count(heading) == 1]
    links = re.findall(r"\]\(#([^)]*)\)", text)
    assert len(set(links)) == len(headings)
    assert set(once) <= set(links)
    assert {link.removesuffix("-1") for link in links} == set(headings)


def test_the_page_of_calls_can_be_read():
    text = CALLS.read_text(encoding="utf-8")
    assert len(text.encode()) < 400_000
    assert not re.search(r"<class|<function| object at |NOTHING|\bSequenceOf\b", text)
    assert text.count("```pycon") >= 20


def test_every_public_name_of_a_library_has_its_place_and_meaning_on_the_page_of_calls(library_calls):
    text = CALLS.read_text(encoding="utf-8")
    for module in library_calls.modules():
        for entry in library_calls.entries(module):
            assert f"### {entry.title}\n" in text
            assert entry.title in library_calls.VALUES or all(member.__doc__ for member in entry.members), entry.title


def test_docstrings_of_parameter_classes_tell_of_all_their_fields(library_calls):
    members = [member for module in library_calls.modules() for entry in library_calls.entries(module) for member in entry.members]
    classes = [member for member in members if isinstance(member, type) and not issubclass(member, Enum | BaseException)]
    assert len(classes) > 30
    untold = {cls.__name__: [name for name in library_calls.fields(cls) if name.rstrip("_") not in cls.__doc__] for cls in classes}
    assert {name: fields for name, fields in untold.items() if fields} == {}
