"""Write what the same jobs take on other machines and here: ``python docs/other_machines.py`` makes `other-machines.md` anew.

It predicts the jobs of one IPU, which takes a minute. Those of pods take minutes and up to 13 GB each: they are predicted by
``python docs/other_machines.py pods``, one after another, or the second alone by ``pods 2``; otherwise their lines stay.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from attrs import frozen

from pypoplar.prediction.prediction import Prediction, prediction_of
from pypoplar.prediction.script_prediction import ScriptCase, predict_script

HERE = Path(__file__).parent
PAGE = HERE / "other-machines.md"
EPOCH = 60_000  # images of MNIST


@frozen
class Script:
    """A script of `jobs` with its arguments; what it does, in words, and what others measured of it."""

    what: str
    script: str
    measured: str
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What predicts it."""
        behind = f" -- {' '.join(self.arguments)}" if self.arguments else ""
        return f"pypoplar predict docs/jobs/{self.script}{behind}"

    def predicted(self) -> Prediction:
        """What it takes here."""
        return predict_script(ScriptCase(HERE / "jobs" / self.script, self.arguments))

    def line(self, cells: Sequence[str]) -> str:
        """Its line of the table, with these cells of what is predicted."""
        return f"| {' | '.join((self.what, self.measured, *cells))} | `{self.command}` |"


@frozen
class Job(Script):
    """One that an IPU does in a short time, of which so many items are told of."""

    items: int = 1

    def row(self) -> str:
        """Its line of the table: both times, on the chip alone and with the streams."""
        whole = self.predicted()
        assert whole.report is not None
        chip = prediction_of(whole.report, whole.items, synthetic_data=True)
        return self.line([time_text(self.items * one.step_seconds / one.items) for one in (chip, whole)])


@frozen
class PodJob(Script):
    """One of many IPUs."""

    def cells(self) -> list[str]:
        """What is predicted of it: items in a second, of the peak, and the fullest tile, of the memory that it has."""
        made = self.predicted()
        assert made.fullest_tile is not None
        assert made.share_of_peak is not None
        full = made.fullest_tile.bytes / made.fullest_tile.limit
        return [f"{made.items_per_second:,.0f} samples/s", f"{100 * made.share_of_peak:.2f} %", f"{100 * full:.0f} %"]

    def kept(self, text: str) -> list[str]:
        """The same, as a page has it; dashes if it has none."""
        found = [line for line in text.splitlines() if line.endswith(f"| `{self.command}` |")]
        return [cell.strip() for cell in found[0].split("|")[3:6]] if found else ["-"] * 3


JOBS = (
    Job("BERT-tiny, inference of one text of 128 tokens", "bert_tiny.py", "Groq 0.06 ms, 0.03 ms of it on the chip; CPU 2.25 ms"),
    Job(
        *("BERT-tiny, inference of one text of 512 tokens", "bert_tiny.py"),
        *("Groq 0.13 ms, 0.09 ms of it on the chip; CPU 9.26 ms", ("--tokens", "512")),
    ),
    Job(
        *("MNIST script of PopTorch, an epoch of 60,000 images", "mnist.py", "an IPU: 10.97 s and 8.73 s, bound by the host"),
        items=EPOCH,
    ),
)
EQUAL = ("--layers", "24", "--stages")
AS_PUBLISHED = ("--layers", "24", "--stages", "3", "7", "7", "7", "--recomputed", "--partials", "half")
PODS = (
    PodJob(
        *("16 IPUs, 4 replicas, as published: stages of 3, 7, 7 and 7 layers, 2,048 micro-batches of 8", "bert_large.py"),
        *("16 Bow IPUs 5,179 samples/s, 22.3 %", (*AS_PUBLISHED, "--replicas", "4", "--accumulated", "2048")),
    ),
    PodJob(
        *("16 IPUs, 4 replicas of 4 equal stages that keep all, 2,048 micro-batches of 8", "bert_large.py"),
        *("-", (*EQUAL, "4", "--replicas", "4", "--accumulated", "2048")),
    ),
    PodJob(
        *("16 IPUs, 8 replicas of 2 equal stages that keep all, 1,024 micro-batches of 8", "bert_large.py"),
        *("-", (*EQUAL, "2", "--replicas", "8", "--accumulated", "1024")),
    ),
    PodJob(
        *("64 IPUs, 16 replicas of 4 equal stages that keep all, 512 micro-batches of 8", "bert_large.py"),
        *("-", (*EQUAL, "4", "--replicas", "16", "--accumulated", "512")),
    ),
)
NOT_COMPARED = (
    (
        "BERT pre-training on a Cerebras: 2,912 samples/s at batch 512, 4,864 at 1,024, 6,728 at 2,048",
        "a wafer, whose batches many IPUs would share",
    ),
    (
        "BERT-Large on SambaNova: 4,543 samples/s with 16 tasks, 2,345 with 8",
        "the length of the samples is not told, nor how many chips a task has",
    ),
)
TEXT = """# The same jobs beside other machines

<!-- Made by docs/other_machines.py, which predicts the jobs. -->

Times that students of a course measured on accelerators, and what one Bow IPU is predicted to take for the same job. *Chip* is the
time without streams, *whole* has the streams of inputs and outputs over the host link in it, one after another. Nothing is fitted.

| job | measured | predicted, chip | predicted, whole | command |
| --- | --- | --- | --- | --- |
{rows}

- The host's own time is in the measured times and not in the predicted ones: loading data, Python and the driver's calls. The
  script for MNIST is bound by it, so that its two times say what the host takes, and the prediction what the IPU would.
- On Groq what is beyond the chip's time is the host's and the link's.
- Weights are on the chip before the call. The jobs have the sizes of the networks and no values; BERT-tiny is in half, MNIST in
  float. In which type the others computed BERT-tiny is not told.

## Pods

BERT-Large, pre-training on 128 tokens in half, 65,536 samples an update, as replicas whose stages have an IPU each. *Memory* is
the fullest tile's, of what a tile has: a job beyond 100 % is predicted as if it had the memory. Stages that keep all have on the
first of four IPUs what the gradients of 7 micro-batches take, of all that layers compute.

| job | published | predicted | of the peak | memory | command |
| --- | --- | --- | --- | --- | --- |
{pods}

- Stages, micro-batches, replicas, products that are added up in half, and layers that keep what comes into them alone and are
  computed again are those of the vendor's public script. Operations that are computed again count in the share of the peak;
  without them it would be 23.0 %, by the samples and shares of the first two rows.
- Not in the predictions are embeddings, the head and its loss, which lie on the first IPU beside its 3 layers, and masks of
  attention; nor that the published optimizer is LAMB, whose states lie outside of the IPUs and are divided among replicas: here it
  is SGD, once in 512 micro-batches or more. What the host does for its streams is not in them either.
- A published figure for 64 IPUs is not known to us, so that its row stands by itself.

Not compared:

{others}
"""


def time_text(seconds: float) -> str:
    """A time in seconds or milliseconds, three digits of it."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def predicted_anew(jobs: Sequence[PodJob]) -> dict[PodJob, list[str]]:
    """Their cells: each job in a process of its own, whose memory the next one has again."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as executor:
        return dict(zip(jobs, executor.map(PodJob.cells, jobs), strict=True))


def page(rows: Sequence[str], pods: Sequence[str]) -> str:
    """The whole page, with these lines of its tables."""
    others = "\n".join(f"- {what}: {why}." for what, why in NOT_COMPARED)
    return TEXT.format(rows="\n".join(rows), pods="\n".join(pods), others=others)


def write(arguments: Sequence[str]) -> None:
    """The page anew: of the jobs of one IPU, and of those of `PODS` that the arguments name."""
    numbers = [int(number) - 1 for number in arguments[1:]] or range(len(PODS))
    cells = predicted_anew([PODS[number] for number in numbers]) if "pods" in arguments else {}
    text = PAGE.read_text(encoding="utf-8")
    pods = [job.line(cells.get(job) or job.kept(text)) for job in PODS]
    PAGE.write_text(page([job.row() for job in JOBS], pods), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
