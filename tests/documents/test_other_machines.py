"""The page of the same jobs beside other machines has what is predicted of them."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script():
    spec = importlib.util.spec_from_file_location("other_machines", ROOT / "docs" / "other_machines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.no_cover
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2))])
def test_a_job_has_the_times_that_are_predicted(number):
    pytest.importorskip("torch")
    made = script()
    assert made.JOBS[number].row() in made.PAGE.read_text(encoding="utf-8"), "run: python docs/other_machines.py"


def test_the_page_has_every_job_and_what_is_not_compared():
    made = script()
    text = made.PAGE.read_text(encoding="utf-8")
    assert all(f"`{job.command}`" in text for job in (*made.JOBS, *made.PODS))
    assert all(f"- {what}: {why}." in text for what, why in made.NOT_COMPARED)


def test_the_page_is_what_the_script_makes_of_its_lines():
    """Jobs of pods are predicted when they are asked for alone: their lines stay as they are, and so must all else."""
    made = script()
    text = made.PAGE.read_text(encoding="utf-8")
    rows = [next(line for line in text.splitlines() if line.endswith(f"| `{job.command}` |")) for job in made.JOBS]
    assert made.page(rows, [job.line(job.kept(text)) for job in made.PODS]) == text, "run: python docs/other_machines.py"


@pytest.mark.parametrize("number", range(4))
def test_a_job_of_a_pod_has_items_in_a_second_a_share_and_memory(number):
    made = script()
    assert len(made.PODS) == 4
    rate, share, memory = made.PODS[number].kept(made.PAGE.read_text(encoding="utf-8"))
    assert re.fullmatch(r"[1-9]\d?(,\d{3})+ samples/s", rate)
    assert 0 < float(share.removesuffix(" %")) < 100
    assert float(memory.removesuffix(" %")) > 0


@pytest.mark.parametrize("number", range(4))
def test_a_job_of_a_pod_treats_so_many_samples_an_update(number):
    """As the page says of all: replicas times micro-batches times eight."""
    arguments = script().PODS[number].arguments
    replicas, accumulated = (int(arguments[arguments.index(name) + 1]) for name in ("--replicas", "--accumulated"))
    assert replicas * accumulated * 8 == 65_536


def test_a_job_that_the_page_has_not_yet_has_dashes():
    made = script()
    assert made.PODS[0].kept("") == ["-", "-", "-"]
