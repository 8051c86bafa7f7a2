"""Runs executables that it knows nothing about. As a program: those whose modes and paths come in, one reply a line goes out.

It runs in a process of its own, so that the crash of one can be seen.
"""

import io
import json
import resource
import signal
import sys
import traceback
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pypoplar import Engine, Executable, FileLoadError, PoplarError
from pypoplar.engine import division
from pypoplar.types import BY_NAME

Array = NDArray[Any]
MEMORY = 6 << 30  # bytes that this program may have; a damaged executable may ask for more than there is


def ramp(type_name: str, size: int, first: int = 0) -> Array:
    """Values that every type holds, counted from the first."""
    return ((np.arange(size) + first) % 7).astype(BY_NAME[type_name].dtype)


def connect(engine: Engine) -> dict[str, Array]:
    """Connect everything that the executable can be connected to; returns the arrays that it will write."""
    outputs = {}
    replicas, replication = engine.executable.replicas, engine.executable.replication
    broadcast = () if replication is None else replication.broadcast
    parted = () if replication is None else replication.parted
    for number, stream in enumerate(engine.executable.streams):
        if stream.kind != "internal":
            own = 1 if number in broadcast else replicas
            array = ramp(stream.type, own * 2 * stream.elements)
            array = array if own == 1 else array.reshape(own, -1)
            engine.connectStream(stream.name, array)
            outputs[stream.name] = array
    for service in engine.executable.services:
        if service["kind"] == "host_function":
            engine.connectHostFunction(service["name"], host_function)
    for remote in engine.executable.remotes:
        for row in range(remote.repeats):
            engine.copyToRemoteBuffer(ramp(remote.type, remote.elements, row), remote.name, row)
    for name, handle in engine.executable.writes.items():
        engine.writeTensor(name, ramp(handle.type, (replicas if name in parted else 1) * int(np.prod(handle.shape))))
    return outputs


def host_function(*arrays: Array) -> None:
    """Puts twice the first array into the last; of the largest floats that is infinity."""
    with np.errstate(over="ignore"):
        arrays[-1][:] = np.resize(arrays[0] * 2, arrays[-1].shape)


def engine_for(executable: Executable, mode: Any) -> Engine:
    """An engine; mode "parallel" is native code where every step, however small, is divided among two threads and in batches."""
    if mode != "parallel":
        return Engine(executable, mode=mode)
    usual = division.SERIAL, division.BATCH_BYTES
    division.SERIAL, division.BATCH_BYTES = 0, 16
    try:
        threads = executable.options.changed({"pypoplar.threads": 2})
        return Engine(attrs.evolve(executable, options=threads))
    finally:
        division.SERIAL, division.BATCH_BYTES = usual


def run(executable: Executable, mode: Any) -> dict[str, Any]:
    """All that can be seen of a run of all programs."""
    engine = engine_for(executable, mode)
    printed = io.StringIO()
    engine.setPrintStream(printed)
    engine.load()
    outputs = connect(engine)
    errors = []
    for number in range(len(executable.entry_streams)):
        try:
            engine.run(number)
        except PoplarError as error:
            errors.append(f"{type(error).__name__}: {error}")
    report = engine.getReport()
    steps = report.execution.steps if report.execution is not None else ()
    return {
        "errors": errors,
        "printed": printed.getvalue(),
        "reads": {name: engine.readTensor(name).tobytes().hex() for name in executable.reads},
        "streams": {name: array.tobytes().hex() for name, array in outputs.items()},
        "remotes": {remote.name: remote_rows(engine, remote) for remote in executable.remotes},
        "steps": [
            [
                step.name,
                step.type,
                step.executions,
                step.sync_cycles,
                step.exchange_cycles,
                step.compute_cycles,
                step.cyclesByTile.tolist(),
            ]
            for step in steps
        ],
        "exchanges": [[step.name, step.phase, step.messages.tolist(), step.bytes_sent.tolist()] for step in executable.exchanges],
    }


def remote_rows(engine: Engine, remote: Any) -> list[str]:
    array = ramp(remote.type, remote.elements)
    rows = []
    for row in range(remote.repeats):
        engine.copyFromRemoteBuffer(remote.name, array, row)
        rows.append(array.tobytes().hex())
    return rows


def too_long(*_: object) -> None:
    raise TimeoutError


def reply(mode: str, path: str, seconds: float) -> dict[str, Any]:
    """What comes of a file: refused when it is loaded, or what its run gives. It is cut short: it may loop for ever."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        executable = Executable.load(path)
        return {"ran": run(executable, mode)}
    except FileLoadError as error:
        return {"refused": str(error)}
    except PoplarError as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    except (TimeoutError, MemoryError) as error:
        return {"stopped": type(error).__name__}
    except Exception:
        return {"broken": traceback.format_exc()}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(reply(*json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
