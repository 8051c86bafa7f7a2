"""Steps of a function that several calls run, told apart by call where the calls say what the function's names stand for in them.

A part has what its call's executions cost, if all executions of a step cost the same: but for vertices whose work depends on data
they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from pypoplar.called_names import name_in_call, names_told
from pypoplar.report.execution import COSTS, COSTS_BY_TILE, Step, numbered_steps
from pypoplar.report.program_nodes import Program
from pypoplar.report.report import Report

Calls = dict[int, list[tuple[Mapping[str, str], int]]]


def steps_by_call(programs: Sequence[Program], steps: Mapping[int, Step]) -> list[tuple[int, Step]]:
    """The steps that ran, given by number, in the same order, each after its number: those of functions in a part for each call."""
    calls = _calls(programs, steps)
    return [(number, part) for number, step in steps.items() for part in _parts(step, calls.get(number, []))]


def steps_of(report: Report) -> list[Step]:
    """The steps of a report that ran, those of functions by call."""
    return [step for _, step in steps_by_call(report.compilation.programs, numbered_steps(report.execution))]


def _calls(programs: Sequence[Program], steps: Mapping[int, Step]) -> Calls:
    """By step: of the calls that run it and tell names, what they tell, and how often they ran."""
    calls: Calls = {}
    seen: set[int] = set()
    for node in (node for root in programs for node in root.nodes()):
        if id(node) in seen:
            continue
        seen.add(id(node))
        for place, child in enumerate(node.children):
            names = names_told(child.detail) if child.type == "Call" else {}
            if not names:
                continue
            times = _executions(node.children[:place][::-1], steps) or _executions(node.children[place + 1 :], steps) or 1
            for leaf in child.nodes():
                if leaf.step in steps:
                    calls.setdefault(leaf.step, []).append((names, times))
    return calls


def _executions(beside: Iterable[Program], steps: Mapping[int, Step]) -> int:
    """How often the nearest step ran that stands beside a call, in the same sequence."""
    return next((steps[one.step].executions for one in beside if one.step in steps), 0)


def _parts(step: Step, calls: Sequence[tuple[Mapping[str, str], int]]) -> list[Step]:
    """A step in a part for each call; costs of all parts add up to the step's."""
    if not calls:
        return [step]
    whole, done = sum(times for _, times in calls), 0
    parts: list[Step] = []
    for names, times in calls:
        first, last = done, done + times
        costs: dict[str, Any] = {
            cost: getattr(step, cost) * last // whole - getattr(step, cost) * first // whole for cost in (*COSTS, *COSTS_BY_TILE)
        }
        program = None if parts else step.program  # its vertices are there once
        parts.append(evolve(step, name=name_in_call(step.name, names), program=program, **costs))
        done = last
    return parts
