"""Writes docs/poptorch-operations.md, the operations of PyTorch that `pypoplar.poptorch` has, from the table of lowerings.

Run it where PyTorch is: ``python docs/torch_operations.py``. A test says when the page is out of date.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path

PAGE = Path(__file__).parent / "poptorch-operations.md"
HEAD = """# Operations of PyTorch on the simulated IPU

<!-- Made by docs/torch_operations.py from the table of lowerings; a test compares them. -->

A module is captured with its gradients as operations of PyTorch's ATen library; these have entries in the table, by the module
of `pypoplar/poptorch/lowering` that they are in. Operations of PyTorch that are not listed are often captured as several of these;
an operation without entry is an error at the first call, which names the user's line.

Numbers are FLOAT, HALF, 32-bit and narrower integers and truth values: 64-bit numbers become 32 bits wide.
Shapes are static. Indices and labels that a call is given, or that a few operations compute from its arguments, are
checked before it runs; of those that the device computes, one out of range gives zeros and changes nothing, where PyTorch raises
an error. Among sorted elements NaN is larger than all else. Constants, and what is computed from them, are folded by PyTorch
itself. Formulas of several steps compute halves in FLOAT.
"""


def page() -> str:
    """The page's text."""
    from pypoplar.poptorch.lowering import whole_table  # noqa: F401 (the table's entries)
    from pypoplar.poptorch.lowering.lowering_table import TABLE

    families: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    notes: dict[tuple[str, str], str] = {}
    for operation, entry in TABLE.items():
        name, _, overload = str(operation).removeprefix("aten.").partition(".")
        family = entry.__module__.removeprefix("pypoplar.poptorch.lowering.")
        families[family][name].add(overload)
        notes[family, name] = " ".join((inspect.getdoc(entry) or "").split("\n\n")[0].split())
    parts = [HEAD]
    for family in sorted(families):
        parts.append(f"\n## {family}\n\n| operation | forms | notes |\n| --- | --- | --- |")
        for name in sorted(families[family]):
            note = notes[family, name].replace("|", "\\|")
            parts.append(f"| `{name}` | {', '.join(sorted(families[family][name]))} | {note} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
