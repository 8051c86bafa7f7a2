"""What the tutorials that train networks share: parameters, streams of batches, and what the machine is predicted to take."""

from collections import defaultdict

import numpy as np
from tqdm import tqdm

from pypoplar import FLOAT, Engine, popops, pva
from pypoplar.program import Copy, Repeat, Sequence

MASKED = 0xFFFFFFFF  # the label of a sample that does not count: its loss and gradient are 0, and it is never right
PASSES = ("forward", "backward", "update")


class Parameters:
    """What is trained. Where the network computes in HALF, updates are added to a FLOAT copy of each parameter, the master."""

    def __init__(self, graph, type, step):
        """`step(master, gradient, prog, name)` adds to `prog` how a master changes, given its gradient."""
        self.graph, self.type, self.step = graph, type, step
        self.values, self.masters = {}, {}

    def add(self, name, value):
        """Train `value`, a tensor of the network; the host reads and writes it, in float32, under this name."""
        master = value if self.type is FLOAT else self.graph.clone(FLOAT, value, f"{name}/master")
        self.values[name], self.masters[name] = value, master
        self.graph.createHostWrite(name, master)
        self.graph.createHostRead(name, master)
        return value

    def update(self, name, gradient, prog):
        """One step of training."""
        self.step(self.masters[name], gradient, prog, f"{name}/update")
        self.refresh(name, prog)

    def load(self, prog):
        """What is done after the host wrote parameters, and before anything is trained."""
        for name in self.values:
            self.refresh(name, prog)

    def refresh(self, name, prog):
        """Make the network's tensor what its master is."""
        if self.masters[name] is not self.values[name]:
            prog.add(popops.cast(self.graph, self.masters[name], self.values[name], f"{name}/update"))


class Trainer:
    """The compiled network: to train on `steps` batches in a run, and to count right answers in as many."""

    LOAD, TRAIN, TEST = range(3)

    def __init__(self, device, parameters, inputs, outputs, train, test, steps):
        """`train` and `test` are programs for one batch.

        Before each, the tensors `inputs` come from the host; after it, those of `outputs` go there, by name. Outputs start at 0.
        """
        graph = parameters.graph
        self.parameters, self.steps, self.device = parameters, steps, device
        self.buffers = {}
        before, after = Sequence(), Sequence()
        for name, tensor in inputs.items():
            stream = graph.addHostToDeviceFIFO(name, tensor.elementType(), tensor.numElements())
            before.add(Copy(stream, tensor, name=f"{name}/forward"))
            self.buffers[name] = np.zeros((steps, *tensor.shape()), tensor.elementType().dtype)
        for name, tensor in outputs.items():
            popops.zero(graph, tensor, before, f"{name}/forward")
            stream = graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements())
            after.add(Copy(tensor, stream, name=f"{name}/forward"))
            self.buffers[name] = np.zeros((steps, *tensor.shape()), tensor.elementType().dtype)
        load = Sequence()
        parameters.load(load)
        loops = [Repeat(steps, Sequence([before, program, after])) for program in (train, test)]
        self.engine = Engine(graph, [load, *loops])
        self.engine.load(device)
        for name, buffer in self.buffers.items():
            self.engine.connectStream(name, buffer)

    def write(self, values):
        """Give parameters, by name, their values."""
        for name, value in values.items():
            self.engine.writeTensor(name, value)
        self.engine.run(self.LOAD)

    def read(self):
        """All parameters, in float32, by name."""
        return {name: self.engine.readTensor(name) for name in self.parameters.masters}

    def run(self, program, **inputs):
        """One run over at most `steps` batches of samples; the outputs, by name: arrays of `steps` of them.

        Where there are fewer samples than `steps` batches have, the others are those of an earlier run, and their label is MASKED.
        """
        for name, samples in inputs.items():
            buffer, given = self.buffers[name].reshape(-1), samples.reshape(-1)
            buffer[: len(given)] = given
            if name == "labels":
                buffer[len(given) :] = MASKED
        self.engine.run(program)
        return {name: buffer.copy() for name, buffer in self.buffers.items() if name not in inputs}

    def prediction(self):
        """The report of one training run, after which the parameters are as before."""
        values = self.read()
        self.engine.resetExecutionProfile()
        self.engine.run(self.TRAIN)
        report = self.engine.getReport()
        self.write(values)
        return report


def run_epoch(trainer, program, batch, labels, **samples):
    """The mean loss of all samples that count and the share of right answers, from runs of a program over them."""
    taken, right, total = batch * trainer.steps, 0, 0.0
    for start in tqdm(range(0, len(labels), taken), unit=" runs", leave=False, disable=None):
        some = slice(start, start + taken)
        outputs = trainer.run(program, labels=labels[some], **{name: values[some] for name, values in samples.items()})
        right += int(outputs["correct"].sum())
        total += float(outputs["loss"].sum())
    counted = np.count_nonzero(labels != MASKED)
    return total / counted, right / counted


def learn(trainer, name, parts, epochs, batch, seed):
    """Train on samples, the input `name`, and print each epoch's loss and accuracy; the last accuracy on samples kept aside.

    `parts` are samples and labels to train on, then those kept aside. Each epoch has an order of its own.
    """
    samples, labels, kept, keptLabels = parts
    random, accuracy = np.random.default_rng(seed), 0.0
    for epoch in range(1, epochs + 1):
        order = random.permutation(len(labels))
        loss, right = run_epoch(trainer, trainer.TRAIN, batch, labels[order], **{name: samples[order]})
        accuracy = run_epoch(trainer, trainer.TEST, batch, keptLabels, **{name: kept})[1]
        print(f"Epoch {epoch}: loss {loss:.4f}, accuracy {right:.1%}, of images kept aside {accuracy:.1%}", flush=True)
    return accuracy


def cycles_by_layer(report, steps):
    """Cycles of a training step by layer and pass, from the names `layer/pass/...`, and those of the host's streams by name."""
    cycles = defaultdict(lambda: dict.fromkeys(PASSES, 0))
    for step in report.execution.steps:
        layer, _, rest = step.name.partition("/")
        part = next((name for name in PASSES if name in rest.split("/")), "forward")
        cycles[layer][part] += step.cycles / steps
    return cycles


def print_prediction(trainer, batch, page=None):
    """Print what a training step takes on the machine, by layer and pass, and the memory of its fullest tile; write a page."""
    report = trainer.prediction()
    cycles = cycles_by_layer(report, trainer.steps)
    target = report.compilation.target
    print(f"{'cycles a step':24}" + "".join(f"{name:>12}" for name in PASSES))
    for layer, parts in cycles.items():
        print(f"{layer or '(no name)':24}" + "".join(f"{parts[name]:12,.0f}" for name in PASSES))
    step = report.execution.totalCycles.total / trainer.steps
    host = sum(one.host_exchange_cycles for one in report.execution.steps) / trainer.steps
    fullest = max(tile.memory.total.includingGaps for tile in report.compilation.tiles)
    rate = batch * target.clockFrequency / step
    print(f"A step: {step:,.0f} cycles, {host:,.0f} of them with the host; {rate:,.0f} samples a second")
    print(f"Fullest tile: {fullest:,} of {target.bytesPerTile:,} bytes")
    if page is not None:
        pva.write_page(report, page)
        print(f"{page} shows all of it")
