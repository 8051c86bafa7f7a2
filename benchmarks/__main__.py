"""``python -m benchmarks [ROW ...] [--smoke] [--output FILE]``: measure, print the table, write it as JSON."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")  # before NumPy is imported: the baselines are on 2 threads
os.environ.setdefault("OMP_NUM_THREADS", "2")

import importlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from benchmarks.measure import Figure, Row

ROWS = (
    "matvec",
    "matmul",
    "regression",
    "superstep",
    "stencil",
    "lattice",
    "counting",
    "exchange",
    "vertices",
    "elements",
    "reductions",
    "copies",
    "many_ipus",
    "replicas",
    "pods",
    "processes",
    "startup",
    "cpp_codelets",
    "memory",
    "profiling",
    "page",
    "unrolled",
    "networks",
    "transformer",
    "torch_models",
    "second_starts",
    "onnx_models",
    "keras_models",
    "large_networks",
    "predictions",
)


@click.command()
@click.argument("rows", nargs=-1, type=click.Choice(ROWS))
@click.option("--smoke", is_flag=True, help="Small sizes: everything runs, the figures mean nothing.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("benchmarks/results/latest.json"))
def main(rows: tuple[str, ...], smoke: bool, output: Path) -> None:
    """Measure ROWS (default: all) and print them beside their targets."""
    load = os.getloadavg()[0]
    if load > 1 and not smoke:
        click.echo(f"note: the machine is busy (load {load:.1f}); ratios to NumPy on 2 threads mean little", err=True)
    click.echo(f"{'row':10}  {'what':72}  {'figure':>12}  {'target':>10}")
    measured: dict[str, list[Figure]] = {}
    for name in rows or ROWS:
        row: Row = importlib.import_module(f"benchmarks.{name}").ROW
        measured[name] = row.measure(smoke)
        for figure in measured[name]:
            click.echo(shown(name, figure, smoke))
    write(output, measured, smoke, load)
    click.echo(f"written to {output}")


def shown(name: str, figure: Figure, smoke: bool) -> str:
    """A line of the table."""
    target = "" if figure.target is None else f"{figure.target:g} {figure.unit}"
    verdict = "" if figure.met is None or smoke else ("ok" if figure.met else "MISSED")
    note = f"  ({figure.note})" if figure.note else ""
    return f"{name:10}  {figure.what:72}  {figure.value:>9.4g} {figure.unit:2}  {target:>10}  {verdict}{note}"


def write(output: Path, measured: dict[str, list[Figure]], smoke: bool, load: float) -> None:
    """The table as JSON, with the machine that it was measured on and how busy that was before."""
    made: dict[str, Any] = {
        "smoke": smoke,
        "machine": {"processors": os.cpu_count(), "architecture": platform.machine(), "load": load},
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("pypoplar", "numpy", "numba", "llvmlite")},
        "rows": {name: [one.to_json() for one in figures] for name, figures in measured.items()},
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
