"""One mutant and the tests that run its line: whether one of them fails."""

from __future__ import annotations

import json
import subprocess
import time
from enum import Enum

from attrs import frozen

from mutation.copied_tree import CopiedTree
from mutation.covering import Covering, lines_of_statement
from mutation.places import Mutant
from mutation.test_order import ORDER, named_files

START = 60.0  # seconds that a process of tests may need to begin, on a machine that has other work
SLOWER = 3  # times as long as the tests took, a mutant may take


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    WITHOUT_TESTS = "no test runs its line"


@frozen
class Trial:
    """What became of a mutant, in so many seconds."""

    mutant: Mutant
    outcome: Outcome
    seconds: float


def try_mutant(copy: CopiedTree, mutant: Mutant, covering: Covering, most: float) -> Trial:
    """Run the files of the tests that run its line, those tests first, until one fails, for at most so many seconds."""
    module = mutant.place.module
    first, last = lines_of_statement((copy.root / module).read_text(), mutant.place.line)
    tests = covering.of(module, first, last)
    if not tests:
        return Trial(mutant, Outcome.WITHOUT_TESTS, 0.0)
    files = named_files(tests)
    taken = sum(seconds for test, seconds in covering.seconds.items() if test.partition("::")[0] in files)
    order = copy.root / "build" / "order.json"
    order.parent.mkdir(exist_ok=True)
    order.write_text(json.dumps(tests))
    begin = time.monotonic()
    with copy.changed(module, mutant.source):
        try:
            run = copy.run(["-m", "pytest", *copy.PYTEST, *files], {ORDER: str(order)}, min(most, START + SLOWER * taken))
            outcome = Outcome.KILLED if run.returncode else Outcome.SURVIVED
        except subprocess.TimeoutExpired:
            outcome = Outcome.TIMED_OUT
    return Trial(mutant, outcome, time.monotonic() - begin)
