"""The page of operations is that which the table gives."""

import re
import runpy
import textwrap
from pathlib import Path

from pypoplar.poptorch.lowering import element_losses

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_page_of_operations_is_up_to_date():
    written = runpy.run_path(str(DOCS / "torch_operations.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"](), "run python docs/torch_operations.py"


def test_the_entries_that_contributing_shows_are_those_of_the_table():
    shown = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    family = Path(element_losses.__file__).read_text(encoding="utf-8")
    (entries,) = re.findall(r"   ```python\n(   @lowers\(.*?)\n   ```", shown, re.DOTALL)
    assert textwrap.dedent(entries) in family
