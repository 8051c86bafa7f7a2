"""Replicas over processes: what poprun, a meeting by MPI and an executable that is sent cost, beside one process and MPI itself."""

from __future__ import annotations

import gc
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import ROOT, Figure, Row, in_new_process, seconds
from benchmarks.networks import BATCH, tutorial
from benchmarks.replicas import STEPS, build, replicated
from pypoplar import FLOAT, Engine, Graph, popdist
from pypoplar.executable.executable import Executable
from pypoplar.host_memory import resident
from pypoplar.program import CrossReplicaCopy, Repeat

SMALL, LARGE = 2, 1 << 18  # floats: 8 bytes and 1 MB
NOW = "import sys, time; sys.stdout.write(f'{time.time()}\\n')"
STARTED = [sys.executable, "-m", "pypoplar.poprun", "--num-instances", "2", "--tag-output", "no", "--allow-run-as-root", "yes"]


# What the processes do


def say(told: dict[str, Any]) -> None:
    """Print a line of JSON at one go: without a buffer, `print` writes the end of a line by itself and two processes' lines mix."""
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


def copies(floats: int, times: int, comm: Any = None) -> Engine:
    """A program that lets two replicas exchange tensors, so many times."""
    device = replicated(64, 2)
    graph = Graph(device, 2)
    x = graph.addVariable(FLOAT, [floats], "x")
    for tile, part in enumerate(np.array_split(np.arange(floats), min(64, floats))):
        graph.setTileMapping(x[int(part[0]) : int(part[-1]) + 1], tile)
    graph.setInitialValue(x, np.zeros(floats, np.float32))
    engine = Engine(graph, Repeat(times, CrossReplicaCopy(x, x, {0: 1, 1: 0})), comm=comm)
    engine.load(device)
    return engine


def ring_seconds(comm: Any, floats: int, times: int, repeats: int) -> float:
    """mpi4py's persistent send and receive of as much between two processes."""
    sent, received = np.zeros(floats, np.float32), np.zeros(floats, np.float32)
    requests = [comm.Recv_init(received, 1 - comm.rank), comm.Send_init(sent, 1 - comm.rank)]
    kind = type(requests[0])

    def go_round() -> None:
        for _ in range(times):
            kind.Startall(requests)
            kind.Waitall(requests)

    taken = seconds(go_round, repeats, before=comm.Barrier) / times
    for request in requests:
        request.Free()
    return taken


def fresh_ring_seconds(comm: Any, floats: int, times: int, repeats: int) -> float:
    """The same by hand of data that have just been written, and are read: a copy on both sides, an Allreduce between."""
    from mpi4py import MPI

    own, sent, received = (np.zeros(floats, np.float32) for _ in range(3))
    words, most = np.zeros(6, np.int64), np.zeros(6, np.int64)
    requests = [comm.Recv_init(received, 1 - comm.rank), comm.Send_init(sent, 1 - comm.rank)]
    kind = type(requests[0])

    def go_round() -> None:
        for _ in range(times):
            np.copyto(sent, own)
            comm.Allreduce(words, most, MPI.MAX)
            kind.Startall(requests)
            kind.Waitall(requests)
            np.copyto(own, received)

    taken = seconds(go_round, repeats, before=comm.Barrier) / times
    for request in requests:
        request.Free()
    return taken


def meetings(repeats: int) -> None:
    """Print the seconds of a copy of 8 bytes and of 1 MB between processes, and of what they are compared with."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    told: dict[str, float] = {}
    for name, floats, times in (("small", SMALL, 1000), ("large", LARGE, 50)):
        told[name] = seconds(copies(floats, times, comm).run, repeats, before=comm.Barrier) / times
        one = copies(floats, times, MPI.COMM_SELF) if comm.rank == 0 else None
        told[f"{name}_alone"] = seconds(one.run, repeats) / times if one is not None else 0.0
        comm.Barrier()
        told[f"{name}_bare"] = ring_seconds(comm, floats, times, repeats)
        told[f"{name}_fresh"] = fresh_ring_seconds(comm, floats, times, repeats)
    if comm.rank == 0:
        say(told)


def sending(tiles: int, repeats: int) -> None:
    """Print the seconds until the second process has the executable of the first, and of `save` and `load`."""
    engine = build(tiles, popdist.getNumTotalReplicas()).engine
    spread, executable = engine._spread, engine.executable
    comm = spread.peers.comm
    sent = seconds(lambda: spread._executable(lambda: executable, "here"), repeats, before=comm.Barrier)
    slowest = max(comm.allgather(sent))
    if comm.rank == 0:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "kept.pop"

            def through_a_file() -> None:
                executable.save(path)
                Executable.load(path)

            file = io.BytesIO()
            executable.serialize(file)
            say({"sent": slowest, "file": seconds(through_a_file, repeats), "bytes": len(file.getvalue())})
    comm.Barrier()


def held(tiles: int, replicas: int) -> None:
    """Print the bytes that this process takes with its replicas of the hand-written network loaded."""
    trainer = build(tiles, replicas)
    engine, device = trainer.engine, trainer.device
    del trainer  # and the graph with it, which an engine does not hold
    gc.collect()
    Engine.load(engine, device)
    say({"held": resident() or 0})
    popdist.synchronize()


def training(tiles: int, replicas: int, repeats: int, threads: int) -> None:
    """Print the seconds of a step of the network in PyTorch on so many replicas of all processes."""
    import torch

    from pypoplar import poptorch
    from pypoplar.popdist import poptorch as instances
    from pypoplar.poptorch.executor import building

    building.TILES = tiles
    torch.manual_seed(0)
    model = tutorial("poptorch_replicas").Network()
    spread = popdist.getNumInstances() > 1
    options = instances.Options() if spread else poptorch.Options().replicationFactor(replicas)
    options.deviceIterations(STEPS)._Popart.setEngineOptions({"pypoplar.threads": str(threads)})
    step = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.03))
    own = BATCH * STEPS * popdist.getNumLocalReplicas() if spread else BATCH * STEPS * replicas
    images, labels = torch.randn(own, 1, 28, 28), torch.arange(own) % 10
    taken = seconds(lambda: step(images, labels), repeats, before=popdist.synchronize)
    if popdist.getInstanceIndex() == 0:
        say({"seconds": taken / STEPS})


# What is measured


def printed(replicas: int, code: str, alone: bool = False) -> list[Any]:
    """The JSON lines that two instances print that run a piece of code, or one process."""
    command = [sys.executable] if alone else [*STARTED, "--num-replicas", str(replicas), sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def start_seconds(repeats: int) -> tuple[float, float]:
    """From the start of poprun, and of mpiexec alone, to the first line of Python of the later of two instances."""
    from pypoplar.poprun.launchers import find_launcher

    line = [find_launcher().path, "-n", "2", sys.executable, "-m", "mpi4py", "-c", NOW]
    taken: list[list[float]] = [[], []]
    for _ in range(repeats):
        for command, times in zip(([*STARTED, "--num-replicas", "2", sys.executable, "-c", NOW], line), taken, strict=True):
            begin = time.time()
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
            times.append(max(map(float, done.stdout.split())) - begin)
    own, bare = map(statistics.median, taken)
    return own, bare


def measure(smoke: bool) -> list[Figure]:
    if importlib.util.find_spec("mpi4py") is None:
        return [Figure("replicas over processes", 0, "", note="mpi4py is not installed")]
    repeats, tiles, many = (1, 32, 4) if smoke else (5, 1472, 16)
    module = "from benchmarks import processes; processes"
    own, bare = start_seconds(repeats)
    (met,) = printed(2, f"{module}.meetings({repeats})")
    (sent,) = printed(2, f"{module}.sending({tiles}, {repeats})")
    halves = printed(many, f"{module}.held({tiles}, {many})")
    whole = in_new_process(f"{module}.held({tiles}, {many})")
    figures = [
        Figure(
            "poprun, 2 instances, to the first line of Python, beyond mpiexec's own", own - bare, "s", 0.5, details={"bare": bare}
        ),
        Figure("CrossReplicaCopy of 8 B between 2 processes", met["small"] * 1e6, "us", details=met),
        Figure("  against the one in a process", met["small"] / met["small_alone"], "x", 3),
        Figure("the same of 1 MB", met["large"] * 1e6, "us"),
        Figure("  against mpi4py's persistent send and receive", met["large"] / met["large_bare"], "x", 1.5),
        Figure("  against that of new data, with a copy on both sides and an Allreduce", met["large"] / met["large_fresh"], "x"),
        Figure("CNN's executable to the other process", sent["sent"] * 1e3, "ms", details=sent),
        Figure("  against save and load", sent["sent"] / sent["file"], "x", 1.2),
        Figure(
            f"memory of a process with half of {many} replicas of the CNN, against one with all",
            max(one["held"] for one in halves) / whole["held"],
            "x",
            0.65,
            details={"whole": whole["held"]},
        ),
    ]
    if importlib.util.find_spec("torch") is None:
        return [*figures, Figure("a training step of replicas over processes", 0, "", note="PyTorch is not installed")]
    (two,) = printed(4, f"{module}.training({tiles}, 4, {repeats}, 1)")
    (one,) = printed(4, f"{module}.training({tiles}, 4, {repeats}, 2)", alone=True)
    return [
        *figures,
        Figure("CNN in PyTorch: a step of 4 replicas in 2 processes of 1 thread", two["seconds"] * 1e3, "ms"),
        Figure("  against 1 process of 2 threads", two["seconds"] / one["seconds"], "x", 1.25),
    ]


ROW = Row("processes", measure)
