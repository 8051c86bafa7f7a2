"""The pages of docs/ that are tables of the code agree with it."""

import importlib.util
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
