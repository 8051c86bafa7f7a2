"""The `pypoplar` command: run tutorials and programs, show profiles, say what is installed, clear the codelet cache."""

from __future__ import annotations

import json
import os
import platform
import re
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import click
from attrs import evolve

from pypoplar import progress, resources
from pypoplar.codelet.listing import listing_of_file
from pypoplar.errors import PoplarError
from pypoplar.files import check_regular
from pypoplar.host_code import cache
from pypoplar.presets import PRESETS, TIMINGS
from pypoplar.report.escaping import escaped
from pypoplar.report.file.sqlite_file import NAME as PROFILE_NAME
from pypoplar.report.file.sqlite_file import load_report
from pypoplar.report.page.blocks import json_text
from pypoplar.report.perfetto.perfetto_trace import ENDINGS as TRACE_ENDINGS
from pypoplar.report.perfetto.perfetto_trace import TILES, write_trace
from pypoplar.report.report import Report
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_values import TOP, summary_values
from pypoplar.target import Target
from pypoplar.tracebacks import ENVIRONMENT, is_ours

if TYPE_CHECKING:
    from pypoplar.prediction.prediction import Prediction

PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
PROFILE = click.Path(exists=True, path_type=Path)
CPP_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PERCENT = re.compile(r"([0-9]{1,6}(?:\.[0-9]+)?) ?%")
LIBRARIES = ("numpy", "llvmlite", "networkx", "attrs")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pypoplar")
@click.option("--traceback", "show_traceback", is_flag=True, help="Show where in pypoplar an error was raised.")
@click.pass_context
def main(context: click.Context, show_traceback: bool) -> None:
    """Poplar-like graph programs on a simulated IPU."""
    context.obj = show_traceback


@main.command(context_settings=PASS_ON, short_help="Run a program, with short messages for errors.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(show_traceback: bool, file: Path, arguments: tuple[str, ...]) -> None:
    """Run FILE.py with ARGUMENTS as `python FILE.py` would, with short messages for errors.

    Of a model, FILE.onnx, it shows outputs and costs; `pypoplar run FILE.onnx --help` has its options.
    """
    with _short_errors(show_traceback):
        check_regular(file)
        if file.suffix.lower() == ".onnx":
            run_onnx(file, arguments)
            return
    run_script(file, arguments, show_traceback)


def run_onnx(file: Path, arguments: Sequence[str]) -> None:
    """Run a model of ONNX with the options of its own command."""
    try:
        from pypoplar.onnx.model_command import run_model_file  # an extra, which takes long to import
    except ModuleNotFoundError as missing:
        if missing.name not in ("onnx", "torch"):
            raise
        raise click.ClickException(str(missing)) from None
    run_model_file.main([str(file), *arguments], "pypoplar run", standalone_mode=False)


class Several(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click
    """A name and values, ``batch=1,2,4``."""

    name = "several"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, list[str]]:
        """The name, and the values as texts; what has none of them is an error of the command line."""
        name, equals, values = str(value).partition("=")
        listed = values.split(",")
        if not equals or not name.strip("-") or not all(listed):
            self.fail(f"{escaped(str(value))!r} is no name with values: write NAME=VALUE,VALUE", parameter, context)
        return name.strip("-"), listed


@main.command(short_help="Predict what a script would cost, without running it.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="For programs: everything as JSON.")
@click.option("--synthetic-data", is_flag=True, help="Leave out what streams from and to the host.")
@click.option("--items", type=click.IntRange(1), metavar="N", help="Of a graph: items that a run of it treats; 1 if not given.")
@click.option("--model", type=click.IntRange(1), metavar="N", help="Of several models the N-th that the script makes.")
@click.option("--sweep", type=Several(), multiple=True, metavar="NAME=A,B", help="The script with --NAME A, and with --NAME B.")
@click.option("--target", type=Several(), multiple=True, metavar="NAME=A,B", help="Targets changed, as Target.evolve does it.")
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="That share a sweep.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page: timeline, roofline.")
@click.pass_obj
def predict(show_traceback: bool, /, file: Path, arguments: tuple[str, ...], **options: Any) -> None:
    """Predict what a step of FILE.py would cost: items in a second, where the time goes, the dearest modules.

    It runs with ARGUMENTS, which stand behind --, until it makes its first Engine or calls its first PyTorch model, and is stopped
    there. An item of a model is one of its batch, device iterations, accumulated batches and replicas. Of a graph program 0 is
    predicted. With --sweep, or several values of --target, a table has all combinations. What FILE prints goes to stderr.
    """
    from pypoplar.prediction import script_prediction  # only this command needs it

    base = script_prediction.ScriptCase(
        file, arguments, options["items"], synthetic_data=options["synthetic_data"], model=options["model"] or 0
    )
    swept, changed = _once_each("--sweep", options["sweep"]), _once_each("--target", options["target"])
    several = bool(swept) or any(len(values) > 1 for values in changed.values())
    page = options["page"]
    if several and page is not None:
        raise click.UsageError("--page shows one prediction; a sweep has its table, with --json for other programs")
    if not several and options["processes"] > 1:
        raise click.UsageError(
            "--processes share a sweep, and there is one prediction: give --sweep, or several values of --target"
        )
    with _short_errors(show_traceback):
        script_prediction.check_names(swept, changed)
    with _script_errors(file, show_traceback):
        if several:
            table = script_prediction.predict_cases(base, swept, changed, options["processes"])
            text = json.dumps(table.to_json(), indent=2) if options["as_json"] else str(table)
            failed = all(row.failed for row in table.rows)
        else:
            single = {name: script_prediction.written_value(value) for name, (value,) in changed.items()}
            prediction = script_prediction.predict_script(evolve(base, target=single))
            text = json.dumps(prediction.to_json(), indent=2) if options["as_json"] else str(prediction)
            failed = False
    click.echo(text)
    if page is not None:
        _write_predicted(prediction, page, show_traceback)
    sys.exit(int(failed))


def _write_predicted(prediction: Prediction, page: Path, show_traceback: bool) -> None:
    """The page of a prediction's report."""
    from pypoplar.report.page import write_page  # late, as its figures take long to import

    assert prediction.report is not None  # a sweep's predictions have none: they come from other processes
    with _short_errors(show_traceback):
        write_page(prediction.report, page)
    click.echo(f"The page is {escaped(str(page))}", err=True)


def _once_each(option: str, given: tuple[tuple[str, list[str]], ...]) -> dict[str, list[str]]:
    """The values of each name."""
    names = [name for name, _ in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"{option} {escaped(twice[0])}: given twice; write all its values behind one, with commas")
    return dict(given)


@main.command(context_settings=PASS_ON, short_help="Run a tutorial, show or copy it, or list them.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def tutorial(show_traceback: bool, name: str | None, arguments: tuple[str, ...]) -> None:
    """Run the tutorial NAME with ARGUMENTS; without a name, list the tutorials.

    `pypoplar tutorial NAME --show` prints its text: what it is about, what to look at, exercises. `pypoplar tutorial NAME
    --copy DIRECTORY` puts the script there, with those that it imports, to be changed.
    """
    if name is None:
        known = resources.tutorials()
        width = max(map(len, known), default=0)
        for entry in known.values():
            click.echo(f"{entry.name:{width}}  {entry.summary}")
        return
    try:
        chosen = resources.tutorial(name)
    except PoplarError as problem:
        raise click.ClickException(str(problem)) from None
    if arguments[:1] == ("--show",):
        _refuse_more("--show", arguments[1:])
        click.echo(chosen.text())
    elif arguments[:1] == ("--copy",):
        if len(arguments) == 1:
            raise click.UsageError("--copy takes the directory that the script is put into")
        _refuse_more("--copy DIRECTORY", arguments[2:])
        _copy(chosen, Path(arguments[1]))
    else:
        run_script(chosen.path, arguments, show_traceback)


def _refuse_more(option: str, rest: tuple[str, ...]) -> None:
    if rest:
        raise click.UsageError(f"behind {option} nothing else is expected, got {escaped(' '.join(rest))!r}")


def _copy(chosen: resources.Tutorial, directory: Path) -> None:
    """Put a tutorial's files into a directory, and say how it is run; nothing is overwritten."""
    places = {path: directory / path.relative_to(chosen.path.parent) for path in chosen.files()}
    there = [str(place) for place in places.values() if place.exists()]
    if there:
        raise click.ClickException(f"nothing is overwritten: {', '.join(there)} is there already")
    try:
        for path, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    except OSError as problem:
        raise click.ClickException(f"{escaped(str(directory))}: {problem.strerror}") from None
    for place in places.values():
        click.echo(escaped(str(place)))
    click.echo(f"\nrun it with: python {escaped(str(directory / chosen.path.name))}")


@main.command(short_help="Open the documents of this version.")
@click.option("--no-open", "stay", is_flag=True, help="Say where the pages are, and open no browser.")
@click.pass_obj
def docs(show_traceback: bool, stay: bool) -> None:
    """Open the documents of this version in the browser: guides, tutorials, the reference. No network is needed.

    They are made the first time, which takes one to two minutes (some 80 s of processor time) and needs what
    the extra `docs` installs.
    """
    from pypoplar import documents  # only this command needs it

    with _short_errors(show_traceback):
        if not documents.place().is_dir():
            click.echo("making the pages; the first time this takes one to two minutes, 80 s of processor time", err=True)
        page = _made_page() if progress.wanted("auto") else documents.start_page()
    click.echo(escaped(str(page)))
    if not stay:
        click.launch(page.resolve().as_uri())


def _made_page() -> Path:
    """The first page of the documents, with a bar while they are made."""
    from pypoplar import documents  # only one command needs it

    with progress.StageBar("making the pages", unit="percent") as bar:
        return documents.start_page(lambda percent, page: bar(percent, 100, page))


@main.command()
def info() -> None:
    """Show versions, the targets, and the cache of compiled codelets."""
    click.echo(f"pypoplar {metadata.version('pypoplar')}")
    click.echo(f"  in        {resources.PACKAGE}")
    click.echo(f"  python    {platform.python_version()} on {platform.machine()}, {os.cpu_count()} processors")
    for name in LIBRARIES:
        click.echo(f"  {name:9} {metadata.version(name)}")
    click.echo("\ntargets, as in IPUModel(name)")
    for preset in PRESETS.values():
        target = Target.of_preset(preset.name)
        click.echo(
            f"  {preset.name:8} {target.getNumIPUs():2} x {target.getTilesPerIPU():4} tiles of {target.getBytesPerTile()} B"
            f" at {target.getTileClockFrequency() / 1e9:.2f} GHz  {preset.meaning}"
        )
    click.echo("\ntimings, as in IPUModel(name, timing)")
    for timing, meaning in TIMINGS.items():
        click.echo(f"  {timing:8} {meaning}{' (default)' if timing == 'model' else ''}")
    click.echo("\ncache of compiled codelets")
    for word, directory in zip(("in", "and in"), cache.places(), strict=False):
        click.echo(f"  {word:9} {directory}")
    click.echo(f"  size      {cache.size() / 1e6:.1f} MB")


@main.command(short_help="Show what the compiler makes of codelets.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("codelet", required=False)
@click.option("--target", default="bow", show_default=True, help="A target of `pypoplar info`.")
@click.pass_obj
def listing(show_traceback: bool, file: Path, codelet: str | None, target: str) -> None:
    """Show the bundles that the lines of CODELET in FILE.py become, with their slots, and how its loops go round.

    The file is run first, as an import runs it. An instance of a template is written as in addVertex: "Scale<float>". Without
    CODELET, all codelets of the file are shown; if one of them cannot be translated, the exit code is 1.
    """
    with _short_errors(show_traceback), _modules_beside(file):
        try:
            listed = listing_of_file(file, codelet, target)
        except (PoplarError, OSError):
            raise
        except Exception as problem:  # the file's own
            if show_traceback:
                raise
            _show_error(problem, str(file.resolve()))
    click.echo(listed.text, nl=False)
    for refusal in listed.refusals:
        click.echo(f"Error: {refusal}", err=True)
    if listed.refusals:
        sys.exit(1)


@main.command(short_help="Say what keeps codelets in C++ from running here.")
@click.argument("files", nargs=-1, required=True, type=CPP_FILE)
@click.option("--flags", default="", help="As compileFlags of addCodelets: '-DX=1 -Iinclude'.")
@click.pass_obj
def check(show_traceback: bool, files: tuple[Path, ...], flags: str) -> None:
    """List what FILES, in C++, have that has no form here, with its line and what to write instead; then the codelets that run.

    The exit code is 1 if there is anything.
    """
    from pypoplar.codelet.cpp.porting import check_files  # only this command needs it

    with _short_errors(show_traceback):
        checked = check_files(files, flags)
    click.echo(checked.text, nl=False)
    if checked.refusals:
        sys.exit(1)


@main.command(short_help="Write codelets in C++ down in Python.")
@click.argument("files", nargs=-1, required=True, type=CPP_FILE)
@click.option("--flags", default="", help="As compileFlags of addCodelets: '-DX=1 -Iinclude'.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file; by default it is printed.")
@click.pass_obj
def port(show_traceback: bool, files: tuple[Path, ...], flags: str, output: Path | None) -> None:
    """Write the codelets of FILES, in C++, as Python, which computes and costs the same.

    What has no form is left as a comment and a NotImplementedError, and told on the way out, with exit code 1.
    """
    from pypoplar.codelet.cpp.porting import port as port_files  # only this command needs it

    with _short_errors(show_traceback):
        ported = port_files(files, flags)
        if output is not None:
            output.write_text(ported.text, encoding="utf-8")
    if output is None:
        click.echo(ported.text, nl=False)
    for refusal in ported.refusals:
        click.echo(f"Error: {refusal}", err=True)
    if ported.refusals:
        sys.exit(1)


@main.command("summary", short_help="Print the summary of a profile.")
@click.argument("profile", type=PROFILE)
@click.option("--steps", is_flag=True, help="Every step of the program with what it cost.")
@click.option("--variables", is_flag=True, help="What variables and constants hold of each tile's memory.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="The N longest steps.")
@click.option("--insights", is_flag=True, help="At the end in words: what could be gained where, and what to try.")
@click.option("--json", "as_json", is_flag=True, help="For programs: the same figures, and the insights, as JSON.")
@click.pass_obj
def summarize(
    show_traceback: bool, profile: Path, steps: bool, variables: bool, top: int | None, insights: bool, as_json: bool
) -> None:
    """Print the summary of PROFILE, a profile.pop or its directory, as Engine.printProfileSummary does."""
    with _short_errors(show_traceback):
        report = load_report(profile)
        if as_json:
            text = json_text(summary_values(report, top=top or TOP, all_steps=steps, variables=variables))
            click.echo(json.dumps(json.loads(text), indent=2))
        else:
            options = {"showExecutionSteps": steps, "showVarStorage": variables}
            click.echo(summary(report, options, top or 0, with_insights=insights), nl=False)


@main.command(short_help="Write a trace of a profile for the Perfetto UI.")
@click.argument("profile", type=PROFILE)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The trace, .pftrace or .perfetto-trace; compressed if it ends in .gz.",
)
@click.option("--tiles", type=click.IntRange(0), default=TILES, show_default=True, help="Slowest tiles of each IPU to show.")
@click.pass_obj
def trace(show_traceback: bool, profile: Path, output: Path | None, tiles: int) -> None:
    """Write a trace of PROFILE, a profile.pop or its directory, for https://ui.perfetto.dev.

    The trace has the phases of supersteps, the program's levels, counters, and the slowest tiles. Without -o it is written beside
    the profile, with the ending .pftrace.gz.
    """
    place = output or _profile_file(profile).with_suffix(".pftrace.gz")
    with _short_errors(show_traceback):
        _refuse_to_overwrite(place, profile)
        _refuse_other_endings(place)
        for note in write_trace(load_report(profile), place, tiles):
            click.echo(f"note: {note}", err=True)
    click.echo(f"{escaped(str(place))}  {_file_size(place)}, for https://ui.perfetto.dev")


@main.command(short_help="Write a profile as a page to look at, or compare two.")
@click.argument("profile", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page; default: beside PROFILE, as .html."
)
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.pass_obj
def report(show_traceback: bool, profile: Path, other: Path | None, output: Path | None, show: bool) -> None:
    """Write PROFILE, a profile.pop or its directory, as one HTML file that needs no network.

    With OTHER, the page compares the two: memory, liveness and cycles with their differences. Without -o it is written beside
    PROFILE, as comparison.html.
    """
    from pypoplar.report import page  # only this command needs it

    if other is not None:
        _refuse_the_same(profile, other)
    beside = _profile_file(profile)
    place = output or (beside.with_suffix(".html") if other is None else beside.with_name("comparison.html"))
    with _short_errors(show_traceback):
        if other is None:
            _refuse_to_overwrite(place, profile)
            page.write_page(load_report(profile), place)
        else:
            _refuse_to_overwrite(place, profile, other)
            page.write_comparison(_named(load_report(profile), profile), _named(load_report(other), other), place)
    click.echo(f"{escaped(str(place))}  {_file_size(place)}")
    if show:
        click.launch(place.resolve().as_uri())


class Percent(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click
    """A share that is written as a percentage, ``5%`` or ``0.5 %``, and as nothing else: 5 could be 500 %."""

    name = "percent"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> Fraction:
        """The share that a text writes as a percentage; anything else is an error of the command line."""
        if isinstance(value, Fraction):
            return value
        match = PERCENT.fullmatch(str(value))
        if match is None:
            self.fail(f"{escaped(str(value))!r} is no percentage: write one such as 5% or 0.5%", parameter, context)
        return Fraction(match[1]) / 100


@main.command(short_help="Say in words what differs between two profiles.")
@click.argument("profile", type=PROFILE)
@click.argument("other", type=PROFILE)
@click.option("--fail-above", type=Percent(), help="End with exit code 1 if cycles or the fullest tile rose by more, such as 5%.")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="How many differences of a kind to print.")
@click.pass_obj
def compare(show_traceback: bool, profile: Path, other: Path, fail_above: Fraction | None, top: int) -> None:
    """Say in words what differs in OTHER from PROFILE: cycles by phase and name, and memory, the largest first.

    With --fail-above it is a check for CI: exit code 1 says that all cycles, or the memory of the fullest tile, rose by more than
    this; 2 that the two cannot be judged by each other: other targets, other numbers of runs, or one that has not run.
    """
    from pypoplar.report.naming import differences  # only this command needs it

    _refuse_the_same(profile, other)
    with _short_errors(show_traceback):
        reports = load_report(profile), load_report(other)
    click.echo(escaped(differences.comparison_text(*reports, top)), nl=False)
    if fail_above is None:
        return
    obstacles = differences.obstacles(*reports)
    if obstacles:
        raise click.UsageError(f"--fail-above cannot judge these: {'; '.join(obstacles)}")
    worse = differences.exceeded(*reports, fail_above)
    if worse:
        click.echo(f"more than {float(100 * fail_above):g} %: {'; '.join(total.words for total in worse)}", err=True)
        sys.exit(1)


@main.group("cache")
def cache_group() -> None:
    """The cache of compiled codelets."""


@cache_group.command(short_help="Delete the compiled codelets.")
def clear() -> None:
    """Delete the compiled codelets; they are compiled anew when they are needed."""
    size = cache.size()
    cache.clear()
    click.echo(f"cleared {size / 1e6:.1f} MB in {' and '.join(map(str, cache.places()))}")


def _profile_file(profile: Path) -> Path:
    """The file that a user means by a profile or its directory."""
    return profile / PROFILE_NAME if profile.is_dir() else profile


def _refuse_the_same(profile: Path, other: Path) -> None:
    """Two names of one file have no difference, which would look like good news."""
    files = _profile_file(profile), _profile_file(other)
    if all(file.exists() for file in files) and files[0].samefile(files[1]):
        raise click.UsageError(f"{escaped(str(profile))} and {escaped(str(other))} are the same profile: nothing to compare")


def _refuse_to_overwrite(place: Path, *profiles: Path) -> None:
    """A profile takes a run to get, so no page or trace of it takes its place."""
    for file in map(_profile_file, profiles):
        if place.exists() and file.exists() and place.samefile(file):
            raise click.ClickException(f"{place}: this is the profile itself; choose another file for -o")
    if not place.absolute().parent.is_dir():
        raise click.ClickException(f"{place}: there is no directory {place.parent}")


def _refuse_other_endings(place: Path) -> None:
    """What is no trace's name would hold one all the same, which no other program expects there."""
    if not place.name.endswith(TRACE_ENDINGS):
        known = f"{', '.join(TRACE_ENDINGS[:-1])} or {TRACE_ENDINGS[-1]}"
        raise click.UsageError(f"{escaped(str(place))}: a trace's name ends in {known}")


def _named(report: Report, profile: Path) -> Report:
    """The report with the name by which the user calls it, if its engine has none."""
    return report if report.name else evolve(report, name=str(profile))


def _file_size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


@contextmanager
def _short_errors(show_traceback: bool) -> Iterator[None]:
    """A `PoplarError` or an error of the system becomes its message and exit code 1."""
    try:
        yield
    except (PoplarError, OSError) as problem:
        if show_traceback:
            raise
        raise click.ClickException(str(problem)) from None


@contextmanager
def _modules_beside(path: Path) -> Iterator[None]:
    """A script imports the modules that lie beside it, as under `python FILE`."""
    search = sys.path[:]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.path[:] = search


def run_script(path: Path, arguments: Sequence[str], show_traceback: bool = False) -> None:
    """Run a script as the main program, in this process.

    A `PoplarError` becomes its message and exit code 1; another exception is shown from the script's own frame on.
    """
    if show_traceback:
        os.environ[ENVIRONMENT] = "1"
    argv = sys.argv[:]
    sys.argv = [str(path), *arguments]
    try:
        with _script_errors(path, show_traceback), _modules_beside(path):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = argv
        if show_traceback:
            del os.environ[ENVIRONMENT]


@contextmanager
def _script_errors(path: Path, show_traceback: bool) -> Iterator[None]:
    """An error that comes out of a script is shown as one of the script's, behind what that printed, and ends the command."""
    try:
        try:
            yield
        finally:
            with suppress(OSError, ValueError):  # nobody reads it any more, or the script closed it
                sys.stdout.flush()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    except PoplarError as problem:
        if show_traceback:
            raise
        click.echo(f"{type(problem).__name__}: {problem}\n{_raised_at(problem.__traceback__)}", err=True)
        sys.exit(1)
    except Exception as problem:
        if show_traceback:
            raise
        _show_error(problem, str(path))


def _show_error(problem: Exception, script: str) -> NoReturn:
    """Show an error from the script's own frame on, and end with exit code 1."""
    problem.__traceback__ = _from_script(problem.__traceback__, script)
    traceback.print_exception(problem)
    sys.exit(1)


def _raised_at(trace: TracebackType | None) -> str:
    """The user's innermost line on the way to the error, not one of a library that stands between; none if there is none."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not (frame.filename.startswith("<") or is_ours(frame.filename))]  # < of imports
    users = [frame for frame in own if not resources.is_installed(frame.filename)]
    lines = [f"  at {last.filename}:{last.lineno}  {last.line or ''}" for last in (users or own)[-1:]]
    return "\n".join([*lines, "  (pypoplar --traceback shows the way there)"])


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The part of a traceback that begins in the script; all of it if the script cannot even be compiled."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != script:
        part = part.tb_next
    return part
