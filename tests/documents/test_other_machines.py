"""The page of the same jobs beside other machines has what is predicted of them."""

import importlib.util
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
    assert all(f"`{job.command}`" in text for job in made.JOBS)
    assert all(f"- {what}: {why}." in text for what, why in made.NOT_COMPARED)
