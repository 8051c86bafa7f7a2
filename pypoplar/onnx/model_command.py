"""``pypoplar run model.onnx``: what comes out of a model, and what a run of it costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.onnx.model import Array, Model, ModelTensor, load
from pypoplar.onnx.node_cycles import node_cycles
from pypoplar.onnx.reference_check import check_outputs
from pypoplar.poptorch.options import Options
from pypoplar.report.file.sqlite_file import save_report
from pypoplar.report.report import Report
from pypoplar.spelling import nearest_or_all

DEAREST = 10  # nodes that are shown
FILLED = ("zeros", "random")
SEED = 42  # of random inputs, which are the same ones every time


class Named(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click
    """A name and a value, ``image=photo.npy``."""

    name = "named"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, str]:
        """The name, and the value as text; what has none is an error of the command line."""
        name, equals, text = str(value).rpartition("=")
        if not equals or not name or not text:
            self.fail(f"{str(value)!r} is no name with a value: write NAME=VALUE", parameter, context)
        return name, text


class NamedShape(Named):
    """A name and sizes, ``image=1,3,224,224``, or the name of a dimension and its size."""

    name = "shape"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The name and the sizes; what is no whole number is an error of the command line."""
        name, text = super().convert(value, parameter, context)
        sizes = text.replace("x", ",").strip("[]()").split(",")
        if not all(one.strip().isdecimal() for one in sizes):
            self.fail(f"{text!r} are no sizes: write NAME=1,3,224,224", parameter, context)
        return name, tuple(int(one) for one in sizes)


@click.command(name="run", short_help="Run a model of ONNX.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--input", "inputs", type=Named(), multiple=True, metavar="NAME=FILE.npy|zeros|random", help="What an input is; random."
)
@click.option(
    "--shape", "shapes", type=NamedShape(), multiple=True, metavar="NAME=1,3,224,224", help="Of an input, or a dimension."
)
@click.option("--precision", type=click.Choice(["float", "half"]), help="Compute all floats in this type.")
@click.option("--device-iterations", type=click.IntRange(1), default=1, metavar="N", help="Batches of a call; 1 if not given.")
@click.option("--profile", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write profile.pop there.")
@click.option("--check", is_flag=True, help="Compare the outputs with ONNX's reference evaluator; exit code 1 if they differ.")
def run_model_file(
    file: Path,
    inputs: Sequence[tuple[str, str]],
    shapes: Sequence[tuple[str, tuple[int, ...]]],
    precision: str | None,
    device_iterations: int,
    profile: Path | None,
    check: bool,
) -> None:
    """Run the model FILE on a simulated Bow: its inputs and outputs, cycles, time, memory, the dearest nodes.

    Inputs are random numbers, the same ones every time, if --input says nothing else; integers are 0. Sizes of dimensions that the
    model leaves open are 1 if --shape says nothing else.
    """
    options = Options().deviceIterations(device_iterations)
    model = load(file, _shapes(file, precision, shapes), precision, options)
    batch = _inputs(model, dict(inputs))
    given = {
        name: np.concatenate([array] * device_iterations) if device_iterations > 1 and array.ndim else array
        for name, array in batch.items()
    }
    results = model(given)
    for line in _told(model, given, results, device_iterations):
        click.echo(line)
    if profile is not None:
        _write_profile(model, profile)
    if check:
        differ, lines = check_outputs(file, batch, results, device_iterations, precision)
        for line in lines:
            click.echo(line)
        sys.exit(int(differ))


def _shapes(file: Path, precision: str | None, given: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    """Shapes of all inputs: those that are given, and 1 for what is left open."""
    declared = load(file, precision=precision).inputs
    names = {one.name for one in declared}
    shapes: dict[str, Any] = {name: sizes if name in names or len(sizes) != 1 else sizes[0] for name, sizes in given}
    for one in declared:
        if one.name in shapes:
            continue
        if one.shape is None:
            raise PoplarTypeError(f"{file.name}: the input {one.name} has no shape: give --shape {one.name}=...")
        shapes[one.name] = tuple(
            size if isinstance(size, int) else shapes.get(size, 1) if isinstance(size, str) else 1 for size in one.shape
        )
    dimensions = {size for one in declared for size in one.shape or () if isinstance(size, str)}
    wrong = [name for name in shapes if name not in names | dimensions]
    if wrong:
        known = [*dimensions, *names]
        raise PoplarTypeError(f"--shape: {file.name} has no dimension or input {wrong[0]!r}{nearest_or_all(wrong[0], known)}")
    return shapes


def _inputs(model: Model, given: dict[str, str]) -> dict[str, Array]:
    unknown = given.keys() - {one.name for one in model.inputs}
    if unknown:
        known = ", ".join(one.name for one in model.inputs) or "none"
        raise PoplarTypeError(f"{model.name} has no input {sorted(unknown)[0]!r}; it has {known}")
    generator = np.random.default_rng(SEED)
    return {one.name: _input(one, given.get(one.name, "random"), generator) for one in model.inputs}


def _input(one: ModelTensor, what: str, generator: np.random.Generator) -> Array:
    dtype = {"float": "float32", "double": "float64"}.get(one.type, one.type)
    shape = tuple(size for size in one.shape or () if isinstance(size, int))
    if what == "zeros":
        return np.zeros(shape, dtype)
    if what == "random":
        if dtype.startswith("float"):
            return generator.standard_normal(shape).astype(dtype)
        return generator.integers(0, 2, shape).astype(dtype) if dtype == "bool" else np.zeros(shape, dtype)
    try:
        array: Array = np.load(what, allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise PoplarTypeError(f"--input {one.name}={what}: it is {' or '.join(FILLED)}, or an array's file: {problem}") from None
    return array


def _told(model: Model, given: dict[str, Array], results: dict[str, Array], batches: int) -> list[str]:
    """The table of inputs and outputs, and what the run cost."""
    rows = [("input", name, array) for name, array in given.items()] + [("output", name, array) for name, array in results.items()]
    table = [("", "name", "type", "shape", "least", "mean", "greatest")]
    table += [(kind, name, str(array.dtype), str(list(array.shape)), *_statistics(array)) for kind, name, array in rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    cycles = model.cycleCount()
    if not cycles:
        return [*lines, "", "All outputs are known without the device: nothing runs there."]
    report = model.getReport()
    return [*lines, "", *_cost(report, cycles, _samples(given, batches)), "", *_dearest(model, report)]


def _statistics(array: Array) -> tuple[str, str, str]:
    if not array.size:
        return "", "", ""
    numbers = array.astype(np.float64)
    return tuple(f"{float(one):.6g}" for one in (numbers.min(), numbers.mean(), numbers.max()))  # type: ignore[return-value]


def _samples(given: dict[str, Array], batches: int) -> int:
    """The items of a call: the rows of its first input."""
    first = next(iter(given.values()), None)
    return batches if first is None or not first.ndim else len(first)


def _cost(report: Report, cycles: int, samples: int) -> list[str]:
    target = report.compilation.target
    seconds = cycles / target.clockFrequency
    memory = report.compilation.memory.including_gaps()
    tile = int(memory.argmax())
    return [
        f"cycles        {cycles:,}",
        f"time          {_seconds(seconds)} on a Bow at {target.clockFrequency / 1e9:.2f} GHz",
        f"samples/s     {samples / seconds:,.0f}",
        f"fullest tile  {tile}: {int(memory[tile]):,} of {target.bytesPerTile:,} B, {memory[tile] / target.bytesPerTile:.1%}",
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _dearest(model: Model, report: Report) -> list[str]:
    rows = node_cycles(report, model.node_paths())
    total = sum(cycles for _, cycles in rows)
    lines = ["dearest nodes      cycles  share"]
    return lines + [f"  {cycles:>16,}  {cycles / total:5.1%}  {label}" for label, cycles in rows[:DEAREST]]


def _write_profile(model: Model, place: Path) -> None:
    if not model.cycleCount():
        raise PoplarTypeError("--profile: nothing runs on the device, so there is no profile")
    place.mkdir(parents=True, exist_ok=True)
    save_report(model.getReport(), place / "profile.pop")
    click.echo(f"\nprofile       {place / 'profile.pop'}")
