"""The commands of the documents run as they stand, and print what stands behind them; what is not run has options that exist."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from document_pages import PAGES, ROOT, blocks
from unmeasured import unmeasured

from pypoplar import resources
from pypoplar.cli import main

NOT_RUN = {
    "pip install": "it fetches what it installs",
    ".venv/bin/pip install": "the same, in an environment of its own",
    "python3 -m venv": "it makes an environment; .ci/run does that, with both commands of the README",
    "pypoplar run model.onnx": "it needs a model, and the extra onnx; tests/onnx runs the command",
    "poprun": "it needs MPI; tests/poprun and tests/popdist run it",
    "pypoplar tutorial poptorch_instances --copy": "what follows it is not run",
    "python -m pypoplar.poptorch": "it needs PyTorch; tests/poptorch runs scripts",
}
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
LEFT_OUT = {"PYTEST_CURRENT_TEST", "CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "PYTHONUNBUFFERED"}
"""pytest, or Python, prints otherwise where one is set."""
PROFILES = {"docs/report.md": ("PROFILE", "BEFORE", "AFTER")}  # what a page calls the user's
FORMS_FOR = (
    "pypoplar ",
    "pip ",
    "python ",
    "python3 ",
    "pytest ",
    "sphinx-build ",
)  # beginnings of what is a command in the middle of a text
PROGRAM = """
import sys
from pypoplar import Engine, FLOAT, Graph, IPUModel, popops, pva
from pypoplar.program import Sequence
device = IPUModel("tiny").createDevice()
graph, prog = Graph(device.getTarget()), Sequence()
popops.addCodelets(graph)
x = graph.addVariable(FLOAT, [8], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, 1.0)
popops.mulInPlace(graph, x, 2.0, prog, "twice")
engine = Engine(graph, prog)
engine.loadAndRun(device)
for place in sys.argv[1:]:
    pva.save_report(engine.getReport(), place)
"""


def commands(text):
    """The commands of a block, one a line, without what is said of them."""
    return [line.partition("  #")[0].strip() for line in text.splitlines() if line.partition("  #")[0].strip()]


def is_run(command):
    return not any(command.startswith(beginning) for beginning in NOT_RUN)


MADE = ("docs/tutorials/", "docs/gallery/")  # of scripts: tests/tutorials runs these pages' commands and compares
PAGES_WITH_COMMANDS = {
    page: [command for block in blocks(page, "sh") for command in commands(block.text)]
    for page in PAGES
    if not page.startswith(MADE)
}
COMMANDS = [(page, command) for page, found in PAGES_WITH_COMMANDS.items() for command in found]


class Shell:
    """A directory in which a page's commands run one after another; browsers open nothing there."""

    def __init__(self, directory):
        self.directory, tools = directory / "place", directory / "tools"
        self.directory.mkdir()
        tools.mkdir()
        for name, command in {
            "python": f'exec "{sys.executable}" "$@"',
            "pypoplar": f"""exec "{sys.executable}" -c 'from pypoplar.cli import main; main(prog_name="pypoplar")' "$@" """,
            "xdg-open": "exit 0",
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        environment = {name: value for name, value in unmeasured().items() if name not in LEFT_OUT}
        self.environment = {
            **environment,
            "PATH": f"{tools}:{environment['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTEST_ADDOPTS": "-p no:cacheprovider -p pypoplar.testing.plugin",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # others take longer to load than the tests to run
            "COLUMNS": "80",
        }

    def write(self, file, text):
        path = self.directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, command):
        """Exit code and output, errors among it."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.replace(f"{self.directory}/", "").replace(f"{ROOT}/", "")


def outputs(page, directory):
    """Runs a page: each block of commands with the last exit code and the output of all, as files and programs are by then.

    A block of Python whose first line is a comment with a file's name is that file. All others so far are `program.py`.
    """
    shell, program = Shell(directory), ""
    if page in PROFILES:
        shell.write("make.py", PROGRAM)
        assert shell.run(f"python make.py {' '.join(PROFILES[page])}") == (0, "")
    for block in blocks(page, "python", "sh"):
        if block.file:
            shell.write(block.file, block.text)
        elif block.language == "python":
            program += block.text
            shell.write("program.py", program)
        else:
            code, output = 0, ""
            for command in filter(is_run, commands(block.text)):
                assert code == 0, f"{command} comes behind one that ended with {code}: {output}"
                code, more = shell.run(command)
                output += more
            yield block, code, output


def without_measures(text):
    """A text without what differs from run to run: times, sizes of files, and empty lines."""
    text = re.sub(r"\bin \d+\.\d+s\b", "in 0.00s", text)
    return [re.sub(r"\d+\.\d (MB|kB)", r"0.0 \1", line.rstrip()) for line in text.splitlines() if line.strip()]


LONG = {"docs/how-to/what-would-it-cost.md"}  # whole networks
RUN = [page for page, found in PAGES_WITH_COMMANDS.items() if any(map(is_run, found))]


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in RUN])
def test_commands_run_and_print_what_stands_behind_them(page, tmp_path):
    for block, code, output in outputs(page, tmp_path):
        if block.output is None:
            assert code == 0, f"{block.text}{output}"
        else:
            assert without_measures(output) == without_measures(block.output), block.text


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_a_file_of_a_page_is_in_one_of_its_commands_or_imported(page):
    text = "\n".join(PAGES_WITH_COMMANDS[page])
    files = {block.file: block.text for block in blocks(page, "python") if block.file}
    for name in files:
        module = Path(name).stem
        imported = [other for other in files.values() if re.search(rf"^(?:from|import) {module}\b", other, re.M)]
        collected = module.startswith("test_") and "pytest" in text
        assert name in text or imported or collected, f"nothing runs {name}"


def check_form(command, page_text, known_options):
    """Refuses a command of which a part does not exist: an option, a command, an extra, a file that the page does not make."""
    for part in re.split(r"&&|\|\||;", command):
        words = shlex.split(part, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        tool, rest = Path(words[0]).name, words[1:]
        if tool in ("python", "python3") and rest[:1] == ["-m"]:
            tool, rest = rest[1], rest[2:]
        if tool == "pip":
            check_installation(rest)
        elif tool == "pytest":
            check_options(rest, known_options)
        elif tool == "pypoplar":
            check_pypoplar(rest)
        elif tool in ("python", "python3"):
            assert rest[0] in page_text.replace(command, "") or (ROOT / rest[0]).is_file(), f"there is no {rest[0]}"
        else:
            assert tool in ("sphinx-build", *SCRIPTS) or importlib.util.find_spec(tool), tool


def check_installation(words):
    assert words[0] == "install"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for word in words[1:]:
        name, extra = re.fullmatch(r"(-e|\.|pypoplar)(?:\[(\w+)\])?", word).groups()
        assert extra is None or (name != "-e" and extra in extras), word


def check_options(words, known):
    for word in words:
        assert not word.startswith("-") or word in known, word


def check_pypoplar(words):
    """Words of the command line stand for what they are, those in capitals for the user's."""
    command, context = main, main.make_context("pypoplar", [], resilient_parsing=True)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    parser = command.make_parser(command.context_class(command, parent=context, **command.context_settings))
    _, left, _ = parser.parse_args(list(words))
    assert not left, f"too many arguments: {left}"
    if command.name == "tutorial" and words and not re.fullmatch(r"(gallery/)?NAME", words[0]):
        script = resources.tutorial(words[0]).path.read_text(encoding="utf-8")
        for word in words[1:]:
            assert word in ("--show", "--copy") or not word.startswith("--") or f'"{word}"' in script, (
                f"{word} is no option of {words[0]}"
            )


@pytest.fixture(scope="module")
def known_options():
    """The options of pytest here, of its plugins too."""
    help_ = subprocess.run(
        [sys.executable, "-m", "pytest", "--help", "-p", "no:cacheprovider", "-p", "pypoplar.testing.plugin", "-p", "xdist.plugin"],
        cwd=ROOT,
        env={**unmeasured(), "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_))


def test_commands_that_are_not_run_and_those_within_a_text_have_a_form_that_exists(known_options):
    unused = set(NOT_RUN)
    for page in [*PAGES, "CONTRIBUTING.md"]:
        text = (ROOT / page).read_text(encoding="utf-8")
        spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
        inline = [span for span in spans if span.startswith(FORMS_FOR)]
        blocked = [command for command in PAGES_WITH_COMMANDS.get(page, ()) if not is_run(command)]
        for command in [*inline, *blocked]:
            unused -= {beginning for beginning in NOT_RUN if command.startswith(beginning)}
            try:
                check_form(command, text, known_options)
            except Exception as problem:
                raise AssertionError(f"{page}: {command}") from problem
    assert not unused, f"no command begins like this: {unused}"


@pytest.mark.parametrize(
    "wrong",
    [
        "pypoplar report profile.pop --opne",
        "pypoplar summarise profile.pop",
        "pypoplar compare a.pop b.pop c.pop",
        "pypoplar tutorial gallery/fft --image x.svg",
        "pip install 'pypoplar[tests]'",
        "python -m pypoplar.torch script.py",
        "python absent.py",
        "pytest --pypoplar-modes interpret",
    ],
)
def test_a_command_with_a_part_that_does_not_exist_is_refused(wrong, known_options):
    with pytest.raises(Exception):  # noqa: B017, PT011 (each check has its own)
        check_form(wrong, wrong, known_options)
