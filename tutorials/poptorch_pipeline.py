"""The network of `poptorch_replicas` in two stages, each on an IPU, and two replicas of both.

The first stage has the convolutions, the second one the linear layers. While the second works on a batch the first goes on
with the next: a pipeline. It needs PyTorch, the extra ``pytorch``.

    pypoplar tutorial poptorch_pipeline                  11 updates: once over the 1,797 digits that come with pypoplar
    pypoplar tutorial poptorch_pipeline 2                two updates
    pypoplar tutorial poptorch_pipeline 2 --turns        the same with stages that work in turn

What to look at
- `BeginBlock` says where a stage begins, and on which IPU it is: the network is that of `poptorch_replicas`, unchanged.
- A pipeline fills and empties for each update, so that gradients of several batches are added up before it.
- The losses are to the bit those of `ShardedExecution`, whose stages work in turn.
- The lines show what the two IPUs of a replica do in the last step: `#` for supersteps that compute, `-` for links and host, and
  nothing while an IPU waits.
- What a stage's gradients need is put aside meanwhile, in stashes: so many bytes of the tiles of a replica.

Exercises
1. Let the second stage begin with the second convolution, `model.features[3]`. Which of the IPUs waits then?
2. Let 16 batches pass through the pipeline before an update. What does an image cost?
3. Let the first stage compute again what its gradients need, by PopART's option `autoRecomputation`. What does it cost,
   and what does it save?
"""

import argparse
import itertools
import sys

import torch
from _arguments import number
from poptorch_replicas import Network, digits

from pypoplar import FileLoadError, poptorch

COLUMNS = 72  # of a line that shows a step


def in_stages():
    """The network, with its convolutions on one IPU and its linear layers on another."""
    model = Network()
    poptorch.BeginBlock(model.features[0], "convolutions", ipu_id=0)
    poptorch.BeginBlock(model.features[6], "linear layers", ipu_id=1)
    return model


def told_step(report, images):
    """What the last step costs, and a line for each IPU of a replica: what it does from the step's begin to its end."""
    execution, trace = report.execution, report.execution.trace
    last = trace.run == trace.run.max()
    step, of, begin, length = (column[last].tolist() for column in (trace.step, trace.ipu, trace.begin, trace.cycles))
    first = min(begin)
    end = max(start + cycles for start, cycles in zip(begin, length, strict=True)) - first
    print(f"A step takes {end:,} cycles, {end / images:,.0f} for each image of a replica")
    variables = report.compilation.loweredVariables
    sizes = zip(variables.owner().tolist(), variables.bytes.tolist(), strict=True)
    print(f"Stashes take {sum(size for owner, size in sizes if '/stash, ' in variables.names[owner]):,} bytes")
    computing = {step.number for step in execution.steps if step.compute_cycles}
    for ipu, whole in enumerate(execution.ipus):
        line = [" "] * COLUMNS
        for executed, on, start, cycles in zip(step, of, begin, length, strict=True):
            if on == ipu:
                for column in range((start - first) * COLUMNS // end, -(-(start - first + cycles) * COLUMNS // end)):
                    line[column] = "#" if executed in computing or line[column] == "#" else "-"
        print(f"IPU {ipu} |{''.join(line)}| waits {whole.waiting_cycles / whole.cycles:.0%}")


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train a convolutional network of PyTorch in two stages on simulated IPUs.")
    parser.add_argument("updates", type=number(int, 1), nargs="?", default=11, help="of the weights (11)")
    parser.add_argument("--replicas", type=number(int, 1), default=2, help="copies of the network, a power of two (2)")
    parser.add_argument("--data", metavar="DIR", help="where MNIST's IDX files are, plain or .gz; without it, the UCI digits")
    parser.add_argument("--rate", type=number(float, 0), default=0.1, help="step of the descent (0.1)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="images of a batch of each replica (8)")
    parser.add_argument("--batches", type=number(int, 1), default=8, help="that each replica takes before an update (8)")
    parser.add_argument("--turns", action="store_true", help="let the stages work in turn")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights, the order and the dropout (0)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    (images, labels), _ = digits(chosen.data)
    torch.manual_seed(chosen.seed)
    model = in_stages()
    strategy = poptorch.ShardedExecution() if chosen.turns else poptorch.PipelinedExecution()
    options = poptorch.Options().replicationFactor(chosen.replicas).setExecutionStrategy(strategy)
    options.outputMode(poptorch.OutputMode.All).randomSeed(chosen.seed)
    options.Training.gradientAccumulation(chosen.batches)
    data = poptorch.DataLoader(options, torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch, shuffle=True)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=chosen.rate))
    print(f"Training on {len(images):,} images, {data.combinedBatchSize} a call; replicas: {chosen.replicas}")
    for update, (some, wanted) in zip(range(1, chosen.updates + 1), itertools.cycle(data), strict=False):
        mean = float(training(some, wanted)[1].mean())
        print(f"Update {update}: loss {mean:.4f} ({mean.hex()})")
    told_step(training.getReport(), chosen.batch * chosen.batches)


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"poptorch_pipeline: {problem}")
