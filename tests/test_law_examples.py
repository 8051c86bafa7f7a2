"""Laws draw the same examples in every process."""

import os
import subprocess
import sys
from pathlib import Path

LAW = """
import importlib
import sys

import conftest

from hypothesis import given, strategies as st

for module in sys.argv[1:]:
    importlib.import_module(module)


@given(st.integers(), st.floats(), st.lists(st.sampled_from(range(1000))))
def law(integer, number, row):
    print(integer, number, row)


law()
"""


def drawn(file, seed, *modules):
    tests = Path(__file__).parent
    path = os.pathsep.join(map(str, (tests, tests / "helpers", tests.parent)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "HYPOTHESIS", "PYTEST"))}
    environment |= {"PYTHONPATH": path, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, str(file), *modules], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_a_law_draws_the_same_examples_whatever_else_its_process_has_imported(tmp_path):
    file = tmp_path / "law.py"
    file.write_text(LAW, encoding="utf-8")
    examples = drawn(file, "0")
    assert len(set(examples)) > 50
    assert drawn(file, "1", "pypoplar.compiler.compile", "pypoplar.engine.engine", "pypoplar.report.making.make_report") == examples
