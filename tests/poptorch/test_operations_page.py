"""The page of operations is that which the table gives."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_operations_is_up_to_date():
    written = runpy.run_path(str(DOCS / "torch_operations.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"](), "run python docs/torch_operations.py"
