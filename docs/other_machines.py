"""Write what the same jobs take on other machines and here: ``python docs/other_machines.py`` makes `other-machines.md` anew.

It predicts the jobs, which takes a minute; what was measured on other machines stands in `MEASURED`.
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from pypoplar.prediction.prediction import Prediction, prediction_of
from pypoplar.prediction.script_prediction import ScriptCase, predict_script

HERE = Path(__file__).parent
PAGE = HERE / "other-machines.md"
EPOCH = 60_000  # images of MNIST


@frozen
class Job:
    """A script of `jobs`, its arguments, and how many of its items are told of; times of other machines by what they are."""

    what: str
    script: str
    items: int
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

    def row(self) -> str:
        """Its line of the table: both times, on the chip alone and with the streams."""
        whole = self.predicted()
        assert whole.report is not None
        chip = prediction_of(whole.report, whole.items, synthetic_data=True)
        times = (time_text(self.items * one.step_seconds / one.items) for one in (chip, whole))
        return f"| {self.what} | {self.measured} | {' | '.join(times)} | `{self.command}` |"


JOBS = (
    Job(
        "BERT-tiny, inference of one text of 128 tokens", "bert_tiny.py", 1, "Groq 0.06 ms, 0.03 ms of it on the chip; CPU 2.25 ms"
    ),
    Job(
        *("BERT-tiny, inference of one text of 512 tokens", "bert_tiny.py", 1),
        *("Groq 0.13 ms, 0.09 ms of it on the chip; CPU 9.26 ms", ("--tokens", "512")),
    ),
    Job("MNIST script of PopTorch, an epoch of 60,000 images", "mnist.py", EPOCH, "an IPU: 10.97 s and 8.73 s, bound by the host"),
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

Not compared:

{others}
"""


def time_text(seconds: float) -> str:
    """A time in seconds or milliseconds, three digits of it."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def page() -> str:
    """The whole page."""
    rows = "\n".join(job.row() for job in JOBS)
    return TEXT.format(rows=rows, others="\n".join(f"- {what}: {why}." for what, why in NOT_COMPARED))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
