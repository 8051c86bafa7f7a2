"""The box that ``--print-topology yes`` prints: a column a replica."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pypoplar.poprun.plan import LaunchPlan

TITLE = " poprun topology "


def topology(plan: LaunchPlan) -> str:
    """Which hosts, IPU-Link domains, instances and replicas there are."""
    replicas = range(plan.shares.replicas)
    instance = [plan.shares.holder(replica) for replica in replicas]
    rows = (
        ("hosts", [plan.instances[number].host for number in instance]),
        ("ILDs", [str(replica * plan.domains // len(replicas)) for replica in replicas]),
        ("instances", [str(number) for number in instance]),
        ("replicas", [str(replica) for replica in replicas]),
    )
    width = max(max(len(str(len(replicas) - 1)), _needed(texts)) for _, texts in rows) + 2
    inside = len(replicas) * (width + 1) - 1
    lines = [f"+{TITLE:=^{12 + inside}}+"]
    for name, texts in rows:
        cells = [f"{text:^{len(group) * (width + 1) - 1}}" for text, group in _groups(texts)]
        lines += [f"| {name:<9} |{'|'.join(cells)}|", f"|{'-' * 11}+{'-' * inside}|"]
    lines[-1] = f"+{'=' * 11}={'=' * inside}+"
    return "\n".join(lines)


def _groups(texts: Sequence[str]) -> list[tuple[str, list[str]]]:
    return [(text, list(group)) for text, group in groupby(texts)]


def _needed(texts: Sequence[str]) -> int:
    """The width of a column so that each text fits into those that it spans."""
    return max(-(-len(text) // len(group)) for text, group in _groups(texts))
