"""The page docs/onnx-operators.md: the operators of ONNX that `pypoplar.onnx` has, from its table and from ONNX's schemas."""

from __future__ import annotations

import inspect
from collections import defaultdict

HEAD = """# Operators of ONNX on the simulated IPU

<!-- Made by docs/tables.py from the table of operators; a test compares them. -->

[`pypoplar.onnx`](onnx.md) has these operators. An entry holds from the opset on that stands beside it, up to the next one of the
same name. What has no entry, but a function body in ONNX's schema, is expanded into it. All else is refused when a model is loaded.
"""
DOMAINS = {"": "ai.onnx"}
INNER = "pypoplar"  # the domain of what plans consist of beside the model's own nodes


def page() -> str:
    """The page's text."""
    from onnx import defs

    from pypoplar.onnx import families  # noqa: F401 (the table's entries)
    from pypoplar.onnx.operator_table import all_operators
    from pypoplar.onnx.planned_loops import LOOPS
    from pypoplar.onnx.sequences import SEQUENCE_OPERATORS

    rows: dict[str, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for one in all_operators():
        if one.domain != INNER:
            note = " ".join((inspect.getdoc(one.entry) or "").split("\n\n")[0].split())
            rows[one.domain][one.name].append((one.since, note))
    rows["ai.graphcore"]["Call"].append((1, "A graph that the node has."))
    rows[""]["If"].append((1, "The branch that is taken; where data decide, the device runs one of both."))
    for name in LOOPS:
        rows[""][name].append((1, "As many rounds as are known."))
    for name in SEQUENCE_OPERATORS:
        rows[""][name].append((11, "While the graph is planned: the device sees the tensors."))
    rows["ai.onnx.preview.training"]["Gradient"].append((1, "Of the nodes before it."))
    parts = [HEAD]
    for domain in sorted(rows):
        parts.append(f"\n## {DOMAINS.get(domain, domain)}\n\n| operator | from opset | notes |\n| --- | --- | --- |")
        for name in sorted(rows[domain]):
            for since, note in rows[domain][name]:
                parts.append(f"| `{name}` | {since} | {note} |".replace("|  |", "| |"))
    parts.append("\n## Expanded into their function bodies\n\n" + ", ".join(f"`{name}`" for name in _expanded(rows, defs)) + "\n")
    parts.append("\n## Not there\n\n" + ", ".join(f"`{name}`" for name in _missing(rows, defs)) + "\n")
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def _newest(defs):
    return [
        one for one in defs.get_all_schemas() if one.domain in ("", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview")
    ]


def _has_body(one) -> bool:
    return one.has_function or one.has_context_dependent_function


def _name(one) -> str:
    return f"{one.domain}:{one.name}" if one.domain else one.name


def _expanded(rows, defs) -> list[str]:
    return sorted(_name(one) for one in _newest(defs) if one.name not in rows[one.domain] and _has_body(one))


def _missing(rows, defs) -> list[str]:
    return sorted(
        _name(one) for one in _newest(defs) if one.name not in rows[one.domain] and not _has_body(one) and not one.deprecated
    )
