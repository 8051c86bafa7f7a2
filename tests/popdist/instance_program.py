"""What two instances do by popdist, for a test, which reads what the first one prints."""

import os

import numpy as np

from pypoplar import INT, Engine, Graph, IPUModel, popdist
from pypoplar.program import CrossReplicaCopy, Repeat

popdist.init()
me = popdist.getInstanceIndex()
total = popdist.getNumTotalReplicas()
model = IPUModel("tiny")
model.numIPUs = total
device = model.createDevice()
graph = Graph(device, total)
x = graph.addVariable(INT, [2], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, [5, 6])
engine = Engine(graph, Repeat(3, CrossReplicaCopy(x, x, {one: (one + 1) % total for one in range(total)})))
engine.load(device)
assert engine._spread.meeting.segments.readers == {(0, 1), (1, 0)} or not hasattr(os, "memfd_create")
popdist.run(engine, 0)
merged = [popdist.getReport(engine, replica) for replica in (0, total - 1)]
told = [popdist.allReduceSum(me + 1), popdist.allGather(np.array([me, 7])).tolist(), popdist.broadcast(me * 10, 1)]
popdist.registerCommunicator([1], 4)
if me == 1:
    told.append(popdist.allReduceSum(9, communicatorId=4))
popdist.synchronize()
told.append(popdist.execute_on_instances([0], lambda: "first"))
if me == 0:
    print(*told, [step.cycles for report in merged for step in report.execution.steps], flush=True)
else:
    assert merged == [None, None]
    assert told[3:] == [9, None]
