"""What the gallery's scripts have in common: the device, arguments, and what a run costs, by superstep."""

import argparse
import re
from collections import defaultdict

from pypoplar import IPUModel

PHASES = ("sync", "exchange", "copy", "compute")


def bow(tiles):
    """A Bow IPU with the first `tiles` of its 1472 tiles; a program that needs more ends here."""
    model = IPUModel()
    if tiles > model.tilesPerIPU:
        raise SystemExit(f"this size needs {tiles:,} tiles, and a Bow has {model.tilesPerIPU:,}")
    model.tilesPerIPU = tiles
    return model.createDevice()


def number(least=1, multiple=1):
    """What argparse reads a whole number with, of at least `least`, a multiple of `multiple`."""

    def read(text):
        if not text.isdecimal() or int(text) < least or int(text) % multiple:
            kind = f"a multiple of {multiple}" if multiple > 1 else "a whole number"
            raise argparse.ArgumentTypeError(f"expected {kind} of at least {least}, got {text!r}")
        return int(text)

    return read


def print_costs(engine, rounds, noun):
    """A line for each kind of superstep, in cycles each time it runs, and what a round costs. Returns cycles of a round.

    "mean tile" is the mean tile's compute cycles as a share of the slowest tile's. What crosses to the host is left out.
    """
    execution = engine.getReport().execution
    cycles, times, balance = defaultdict(lambda: [0] * len(PHASES)), defaultdict(int), {}
    for step in execution.steps:
        if step.cycles > step.host_exchange_cycles:
            name = re.sub(r"_\d+$", "", step.name)  # compute sets of one name are numbered
            for place, phase in enumerate(PHASES):
                cycles[name][place] += getattr(step, f"{phase}_cycles")
            times[name, step.type] += step.executions  # a superstep's parts are steps of different types
            if step.compute_cycles and step.cyclesByTile.size:
                balance[name] = f"{step.cyclesByTile.mean() / step.cyclesByTile.max():10.0%}"
    width = max(30, 2 + max(map(len, cycles)))
    print(
        f"{'superstep, cycles each time':{width}} {'times':>8} {'sync':>8} {'exchange':>8} {'copies':>8} {'compute':>8}  mean tile"
    )
    for name, phases in cycles.items():
        runs = max(count for (step, _), count in times.items() if step == name)
        cells = " ".join(f"{one / runs:8,.0f}" for one in phases)
        print(f"  {name:{width - 2}} {runs:8,} {cells} {balance.get(name, '')}".rstrip())
    total = sum(map(sum, cycles.values()))
    micro = total / execution.clockFrequency * 1e6
    every = f"; all {rounds:,}: {micro / 1000:,.3f} ms" if rounds > 1 else ""
    article = "an" if noun[0] in "aeiou" else "a"
    print(f"{article} {noun}: {total / rounds:,.0f} cycles, {micro / rounds:,.2f} us on a Bow{every}")
    return total / rounds
