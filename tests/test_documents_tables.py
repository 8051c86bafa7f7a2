"""The pages of docs/ that are tables of the code agree with it."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def load_tables():
    spec = importlib.util.spec_from_file_location("documents_tables", DOCS / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(load_tables().PAGES))
def test_a_page_is_what_the_code_says(name):
    expected = load_tables().PAGES[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == expected, f"run: python docs/tables.py (to make {name} anew)"
