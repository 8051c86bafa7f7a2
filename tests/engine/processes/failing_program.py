"""A program of two instances that fails in the way that its argument names, at one of them."""

import os
import signal
import sys
import threading
import time

import numpy as np
from mpi4py import MPI

from pypoplar import INT, Engine, Graph, IPUModel, popdist
from pypoplar.program import Copy, CrossReplicaCopy, Repeat, Sequence

HOW, WHO, WHEN = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
RANK = MPI.COMM_WORLD.rank
FAILS = WHO == RANK
if HOW == "killed" and FAILS:
    threading.Timer(WHEN, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
model = IPUModel("tiny")
model.numIPUs = 4
device = model.createDevice()
graph = Graph(device, 4)
x = graph.addVariable(INT, [4 if HOW == "graph" and FAILS else 3], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, np.zeros(x.numElements(), np.int32))
out = graph.addDeviceToHostFIFO("out", INT, x.numElements())
ring = {0: 1, 1: 2, 2: 3, 3: 0}
around = CrossReplicaCopy(x, x, ring, "around")
programs = [Sequence([Repeat(1_000_000 if HOW == "killed" else 3, around), Copy(x, out), around]), around]
engine = Engine(graph, programs, {"pypoplar.mpi_timeout": 1 if HOW == "late" else 60}, comm=MPI.COMM_WORLD)
engine.load(device)


def take(chunk):
    if HOW == "callback" and FAILS:
        raise ValueError("no more")


engine.connectStreamToCallback("out", take)
match HOW:
    case "foreign" if RANK == 0:
        engine.connectStreamToCallback("out", 3, take)
    case "script" if FAILS:
        time.sleep(WHEN)
        raise RuntimeError("in the script")
    case "status" if FAILS:
        sys.exit(3)
    case "ended" if FAILS:
        sys.exit(0)
    case "late" if FAILS:
        time.sleep(60)
    case "host" if FAILS:
        popdist.synchronize()
    case "other":
        engine.run(RANK)
engine.run(0)
time.sleep(10)
