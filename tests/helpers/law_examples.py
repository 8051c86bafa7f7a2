"""Which examples laws have: how many, under which profile, and drawn from what."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

USUAL = 100  # what the numbers at the laws are parts of
PROJECT, FEW, THOROUGH = 20, 3, 10_000
FEWEST = 8  # of a law that asks for as many, so that none is tried with one or two
PROFILE = "HYPOTHESIS_PROFILE"
SEED = "PYPOPLAR_SEED"
NO_COMMIT = "no-commit"


def load_profile() -> str:
    """Register the profiles of this project, load the one that the environment names, and give its name.

    `project` draws a fifth of the usual examples, the same ones every time; `ci` the usual number, from a seed of its own for every
    commit; `few` hardly any; `thorough` a hundred times as many, others every time.
    """
    common: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
    settings.register_profile("project", **common, max_examples=PROJECT, derandomize=True, database=None)
    settings.register_profile("few", settings.get_profile("project"), max_examples=FEW)
    settings.register_profile("ci", **common, max_examples=USUAL, derandomize=False, database=None)
    settings.register_profile("thorough", **common, max_examples=THOROUGH, derandomize=False)
    name = os.environ.get(PROFILE, "project")
    settings.load_profile(name)
    if name != "thorough":
        draw_no_constants_of_the_code()
    return name


def examples(count: int, fewest: int = FEWEST) -> Callable[[Any], Any]:
    """Draw so many examples of a law; in proportion where a profile has more or fewer than usual, but not below the fewest."""
    most = settings().max_examples
    return settings(max_examples=max(count * most // USUAL, min(count, fewest, most)))


def always(count: int) -> Callable[[Any], Any]:
    """Draw so many examples under every profile, for what only so many show together."""
    return settings(max_examples=count)


def commit_seed(directory: Path) -> str:
    """What the profile `ci` draws from: `PYPOPLAR_SEED`, else the hash of the commit that is checked out, else a word.

    So a second run of one commit is the same run, and the next commit draws other examples.
    """
    given = os.environ.get(SEED)
    if given:
        return given
    command = ["git", "-C", str(directory), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return NO_COMMIT
    return done.stdout.strip() or NO_COMMIT


def draw_no_constants_of_the_code() -> None:
    """Let examples depend on nothing but the law.

    Hypothesis mixes constants from the source of what has been imported by then into what it draws. So a law would have other
    examples alone than among all tests, and others in each worker that shares them.
    """
    assert hasattr(providers, "_get_local_constants")
    providers._get_local_constants = Constants
