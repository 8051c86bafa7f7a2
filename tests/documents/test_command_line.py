"""The page of the command line is what commands print, and names every environment variable that is read."""

import re
from pathlib import Path

from click.testing import CliRunner

from pypoplar.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_each_help_is_what_the_command_prints():
    shown = re.findall(r"^```text\n(Usage: pypoplar(.*?) \[OPTIONS\].*?)^```", PAGE, re.M | re.S)
    assert len(shown) == len(re.findall(r"^##? (pypoplar|The command line)", PAGE, re.M)) >= 12
    for text, words in shown:
        result = CliRunner().invoke(main, [*words.split(), "--help"], prog_name="pypoplar", terminal_width=80)
        assert (result.exit_code, result.stdout) == (0, text)


def test_each_environment_variable_that_is_read_stands_on_the_page():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "pypoplar").rglob("*.py"))
    read = set(re.findall(r"""["']((?:PYPOPLAR|POPLAR|POPDIST|POPTORCH|OMPI)_[A-Z_]+)["']""", sources))
    assert read == set(re.findall(r"^\| `(\w+)`", PAGE, re.M))
