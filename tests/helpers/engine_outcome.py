"""What is left of a run of a random program, for tests that compare runs."""

import io

import numpy as np
from engine_builder import counted, traced

from pypoplar import Engine, PoplarError


def outcome(made, executable, mode, options):
    """All that is left of a run: values, prints, errors, account."""
    engine = Engine(executable, options, mode=mode)
    engine.load(made.device)
    out = io.StringIO()
    engine.setPrintStream(out)
    arrays = made.connect(engine)
    errors = []
    for number in [*range(len(made.programs)), 0]:
        try:
            engine.run(number)
        except PoplarError as error:
            errors.append(f"{type(error).__name__}: {error}")
    values = {name: engine.readTensor(name) for name in made.handles}
    for name, dtype, count in made.rows:
        for row in range(2):
            values[name, row] = np.zeros(count, dtype)
            engine.copyFromRemoteBuffer(name, values[name, row], row)
    execution = engine.getReport().execution
    steps = [] if execution is None else execution.steps
    account = [
        (
            *(one.name, one.type, one.executions, one.depth, one.sync_cycles, one.exchange_cycles, one.compute_cycles),
            *(one.cyclesByTile, one.activeCyclesByTile, one.exchange_cycles_by_tile, one.host_bytes),
        )
        for one in steps
    ]
    by_type = {} if execution is None else {name: one.cycles for name, one in execution.cycles_by_vertex_type.items()}
    left = {"values": values, "arrays": arrays, "printed": out.getvalue(), "errors": errors}
    trace = [] if execution is None else traced(execution.trace)
    return left | {"account": account, "by type": by_type, "flops": counted(engine), "trace": trace}
