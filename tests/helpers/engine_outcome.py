"""What is left of a run of a random program, for tests that compare runs."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import astuple
from engine_builder import counted, traced
from engine_random import RandomProgram

from pypoplar import Engine, Executable, PoplarError
from pypoplar.report.execution import Execution


def outcome(random_program: RandomProgram, executable: Executable, mode: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """All that is left of a run: values, prints, errors, account."""
    engine = Engine(executable, options, mode=mode)
    engine.load(random_program.device)
    out = io.StringIO()
    engine.setPrintStream(out)
    arrays = random_program.connect(engine)
    errors = []
    for number in [*range(len(random_program.programs)), 0]:
        try:
            engine.run(number)
        except PoplarError as error:
            errors.append(f"{type(error).__name__}: {error}")
    values: dict[Any, Any] = {name: engine.readTensor(name) for name in random_program.handles}
    for name, dtype, count in random_program.rows:
        for row in range(2):
            values[name, row] = np.zeros(count, dtype)
            engine.copyFromRemoteBuffer(name, values[name, row], row)
    execution = engine.getReport().execution
    steps = () if execution is None else execution.steps
    account = [
        (
            *(step.name, step.type, step.executions, step.depth, step.sync_cycles, step.exchange_cycles, step.compute_cycles),
            *(step.cyclesByTile, step.activeCyclesByTile, step.exchange_cycles_by_tile, step.host_bytes),
        )
        for step in steps
    ]
    by_type = {} if execution is None else {name: astuple(counts) for name, counts in execution.cycles_by_vertex_type.items()}
    left = {"values": values, "arrays": arrays, "printed": out.getvalue(), "errors": errors}
    trace = [] if execution is None else traced(execution.trace)
    lines = [] if execution is None or execution.lines is None else line_facts(execution)
    return left | {"account": account, "by type": by_type, "flops": counted(engine), "trace": trace, "lines": lines}


def line_facts(execution: Execution) -> list[Any]:
    """Executions of blocks and slowest vertices. Lines have all that their vertex types were charged, and that their code took."""
    profile = execution.lines
    assert profile is not None
    for name, costs in execution.cycles_by_vertex_type.items():
        lines = profile.lines(name) if name in profile.vertex_types else ()
        assert sum(line.slots for line in lines) == costs.cycles
        assert not profile.compiled or sum(line.compiled or 0 for line in lines) == costs.compiled_cycles
    slowest = {vertex.compute_set: vertex.cycles for vertex in profile.slowest}
    for step in execution.steps:
        if step.executions == 1 and len(step.cyclesByTile):
            assert slowest.get(step.name, 0) <= step.cyclesByTile.max() or sum(one.name == step.name for one in execution.steps) > 1
    return [*map(astuple, profile.groups), *map(astuple, profile.slowest)]
