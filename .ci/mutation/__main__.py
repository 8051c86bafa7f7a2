"""Mutants of rooms or modules: `.ci/mutants`."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutation.copied_tree import CopiedTree
from mutation.covering import FailingTests, covering
from mutation.drawing import drawn_places
from mutation.equal import EqualMutant, equal_mutants
from mutation.places import Mutant, mutant_at, places_of
from mutation.rooms import UnknownRoom, folders_of_tests, modules_of
from mutation.trial import Outcome, Trial, try_mutant

HOURS = 2.0


def main(arguments: Sequence[str]) -> int:
    """Try mutants, and tell which survive; 1 if some do."""
    asked = _parser().parse_args(arguments)
    root = Path(asked.root).resolve()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    try:
        modules = sorted({module for room in asked.rooms for module in modules_of(root, room)})
        tests = sorted(set(asked.tests or [each for module in modules for each in folders_of_tests(root, module)]))
    except UnknownRoom as error:
        print(error, file=sys.stderr)
        return 2
    kept = root / "build" / "mutants"
    print(f"seed {seed}; tests: {' '.join(tests)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy = CopiedTree.of(root, Path(place) / "tree", kept / "cache")
        try:
            measured = covering(copy, modules, tests, kept)
        except FailingTests as error:
            print(f"the tests fail without a mutant:\n{error}", file=sys.stderr)
            return 2
        known = equal_mutants(root / ".ci" / "equal_mutants.toml")
        trials, end = [], time.monotonic() + asked.hours * 3600
        for mutant in drawn_mutants(root, modules, known, asked.count, seed):
            left = end - time.monotonic()
            if left <= 0:
                print(f"{asked.hours:g} hours are over: the other mutants are not tried")
                break
            trials.append(try_mutant(copy, mutant, measured, left))
            print(_line(len(trials), trials[-1]), flush=True)
    return _tell(trials, seed)


def drawn_mutants(root: Path, modules: Sequence[str], known: Sequence[EqualMutant], count: int, seed: int) -> Iterator[Mutant]:
    """So many mutants of some modules, without those that are known as equal."""
    sources = {module: (root / module).read_text() for module in modules}
    places = [place for module, source in sources.items() for place in places_of(module, source)]
    left_out = {(equal.module, equal.before, equal.after) for equal in known}
    for chosen in drawn_places([(place.module, place.line) for place in places], count, seed):
        mutant = mutant_at(places[chosen], sources[places[chosen].module])
        if mutant is None or (mutant.place.module, mutant.before, mutant.after) in left_out:
            continue
        yield mutant
        count -= 1
        if count == 0:
            return


def _line(number: int, trial: Trial) -> str:
    place = trial.mutant.place
    return f"{number:4} {trial.outcome.value:10} {trial.seconds:6.1f} s  {place.module}:{place.line} {place.operator}"


def _tell(trials: Sequence[Trial], seed: int) -> int:
    counted = Counter(trial.outcome for trial in trials)
    living = [trial for trial in trials if trial.outcome in (Outcome.SURVIVED, Outcome.WITHOUT_TESTS)]
    for trial in living:
        print(f"\n{trial.outcome.value}:\n{trial.mutant.diff}")
    told = ", ".join(f"{counted[outcome]} {outcome.value}" for outcome in Outcome)
    print(f"\n{len(trials)} mutants with seed {seed}: {told}")
    return 1 if living else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".ci/mutants",
        description="Puts bugs into rooms or modules one at a time, in a copy of the tree, and runs the tests of their lines.",
    )
    parser.add_argument("rooms", nargs="+", metavar="ROOM_OR_MODULE", help="compiler/liveness, or a path of a module")
    parser.add_argument("--count", type=int, default=100, help="how many mutants (100)")
    parser.add_argument("--seed", type=int, help="what they are drawn with, as an earlier run has printed it")
    parser.add_argument("--hours", type=float, default=HOURS, help=f"after how many no other is tried ({HOURS:g})")
    parser.add_argument("--tests", nargs="+", help="tests that may find them, instead of the folder of the room's name")
    parser.add_argument("--root", default=".", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
