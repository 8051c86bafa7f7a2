"""The `pypoplar` command: run tutorials and programs, say what is installed, clear the cache of compiled codelets."""

from __future__ import annotations

import os
import platform
import runpy
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from types import TracebackType

import click

from pypoplar import resources
from pypoplar.codelet import cache
from pypoplar.errors import PoplarError
from pypoplar.presets import PRESETS
from pypoplar.target import Target

PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
LIBRARIES = ("numpy", "numba", "llvmlite", "networkx", "attrs")


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
    """Run FILE.py with ARGUMENTS as `python FILE.py` would, with short messages for errors."""
    run_script(file, arguments, show_traceback)


@main.command(context_settings=PASS_ON, short_help="Run a tutorial, or list them.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def tutorial(show_traceback: bool, name: str | None, arguments: tuple[str, ...]) -> None:
    """Run the tutorial NAME with ARGUMENTS; without a name, list the tutorials."""
    if name is None:
        known = resources.tutorials()
        width = max(map(len, known), default=0)
        for one in known.values():
            click.echo(f"{one.name:{width}}  {one.summary}")
        return
    try:
        script = resources.tutorial(name).path
    except PoplarError as problem:
        raise click.ClickException(str(problem)) from None
    run_script(script, arguments, show_traceback)


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
    click.echo("\ncache of compiled codelets")
    click.echo(f"  in        {cache.location()}")
    click.echo(f"  size      {cache.size() / 1e6:.1f} MB")


@main.group("cache")
def cache_group() -> None:
    """The cache of compiled codelets."""


@cache_group.command(short_help="Delete the compiled codelets.")
def clear() -> None:
    """Delete the compiled codelets; they are compiled anew when they are needed."""
    size = cache.size()
    cache.clear()
    click.echo(f"cleared {size / 1e6:.1f} MB in {cache.location()}")


def run_script(path: Path, arguments: Sequence[str], show_traceback: bool = False) -> None:
    """Run a script as the main program, in this process.

    A `PoplarError` becomes its message and exit code 1; another exception is shown from the script's own frame on.
    """
    argv, search = sys.argv[:], sys.path[:]
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
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
        problem.__traceback__ = _from_script(problem.__traceback__, str(path))
        traceback.print_exception(problem)
        sys.exit(1)
    finally:
        sys.argv, sys.path[:] = argv, search


def _raised_at(trace: TracebackType | None) -> str:
    """The user's innermost line on the way to the error."""
    frames = traceback.extract_tb(trace)
    own = [one for one in frames if not _is_ours(one.filename)]
    last = own[-1] if own else frames[-1]
    return f"  at {last.filename}:{last.lineno}  {last.line or ''}\n  (pypoplar --traceback shows the way there)"


def _is_ours(filename: str) -> bool:
    if filename.startswith("<"):  # the import machinery
        return True
    path = Path(filename).resolve()
    return path.is_relative_to(resources.PACKAGE) and not path.is_relative_to(resources.directory("tutorials"))


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The part of a traceback that begins in the script; all of it if the script cannot even be compiled."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != script:
        part = part.tb_next
    return part
