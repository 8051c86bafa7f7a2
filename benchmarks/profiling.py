"""An epoch of the regression on MNIST-size data, a run of the engine for every batch: with its profile and without."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate, in_new_process, peak_bytes
from benchmarks.regression import PIXELS, engine

IMAGES = 60_000
STORED = 2_000  # images that there are; their stream begins again at its end
BATCH = 4
MEGABYTE = 1e6
EPOCH = "from benchmarks import profiling; profiling.epoch({tiles}, {runs}, {profiled}, {place!r})"


def trainer(tiles: int, options: dict[str, Any]) -> Any:
    """An engine with random images and labels."""
    random = np.random.default_rng(0)
    made = engine(tiles, BATCH, options)
    made.connectStream("images", random.random((STORED, PIXELS), np.float32))
    made.connectStream("labels", random.integers(0, 10, STORED, np.uint32))
    made.writeTensor("W", np.zeros((10, PIXELS), np.float32))
    made.writeTensor("b", np.zeros((10, 1), np.float32))
    return made


def epoch(tiles: int, runs: int, profiled: bool, place: str) -> None:
    """Run an epoch, profiled and its profile written or not; print how much memory it has taken."""
    made = trainer(tiles, {"autoReport.all": profiled, "autoReport.directory": place})
    if not profiled:
        made.disableExecutionProfiling()
    for _ in range(runs):
        made.run()
    if profiled:
        made.getReport()
        del made  # writes the rest of the profile
    print(f'{{"bytes": {peak_bytes()}}}')


def measure(smoke: bool) -> list[Figure]:
    tiles = 1472
    runs, rounds, each, epochs = (5, 1, 2, 1) if smoke else (IMAGES // BATCH, 61, 50, 2)
    with tempfile.TemporaryDirectory() as place:
        made, recording = trainer(tiles, {}), trainer(tiles, {"autoReport.all": True, "autoReport.directory": place})

        def work(engine: Any, switch: Any) -> None:
            switch()
            for _ in range(each):
                engine.run()

        ways = (
            (made, made.enableExecutionProfiling),
            (recording, recording.enableExecutionProfiling),
            (made, made.disableExecutionProfiling),
        )
        with_profile, with_lines, without = alternate([lambda way=way: work(*way) for way in ways], rounds)
        del made, recording, ways  # the profile is written
        gc.collect()
        codes = [EPOCH.format(tiles=tiles, runs=runs, profiled=profiled, place=place) for profiled in (True, False)]
        taken = [[in_new_process(code) for code in codes] for _ in range(epochs)]
        size = (Path(place) / "profile.pop").stat().st_size
    profiled, bare = (min(one["wall"] for one in ways) for ways in zip(*taken, strict=True))
    added = max(one["bytes"] - other["bytes"] for one, other in taken)
    run = {"seconds": with_profile / each, "without": without / each}
    epoch = {"seconds": profiled, "without": bare}
    lines = {"seconds": with_lines / each, "without": without / each}
    short = f"a run of the regression of {BATCH} images, profiled, against not profiled"
    long = f"an epoch of {runs * BATCH:,} images in {runs:,} runs"
    return [
        Figure(short, with_profile / without, "x", 1.1, details=run),
        Figure("  the same, with lines recorded by autoReport.all", with_lines / without, "x", 1.1, details=lines),
        Figure(f"{long}, autoReport.all, against none", profiled / bare, "x", 1.1, details=epoch),
        Figure("memory that its profile adds", added / MEGABYTE, "MB", 200),
        Figure("its file profile.pop", size / MEGABYTE, "MB"),
    ]


ROW = Row("profiling", measure)
