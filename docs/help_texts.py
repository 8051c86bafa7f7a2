"""The page of the command line: what each command says of itself, and the environment variables that are read."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pypoplar.cli import main
from pypoplar.engine.processes.instance_environment import VARIABLES as INSTANCE_VARIABLES
from pypoplar.poprun.poprun_options import help_text as poprun_help

WIDTH = 80
MORE: dict[str, str] = {
    "run": "[When it goes wrong](start.md#when-it-goes-wrong) shows a message.",
    "predict": "[Predictions](api/prediction.md) of graphs and sweeps in a program.",
    "tutorial": "[The tutorials](tutorials.md) are pages too, and so are the programs of [the gallery](gallery.md).",
    "docs": "These pages, for the version that is installed.",
    "info": "What belongs into a report of a fault.",
    "listing": "[Make a codelet fast](how-to/fast-codelet.md) reads a listing.",
    "summary": "[Find out why a program is slow](how-to/slow-program.md) goes by its steps, insights and source lines.",
    "trace": "[Read a profile](how-to/read-a-profile.md) has this and other ways to look at it.",
    "report": "[The page of a profile](report.md) tells what its views show.",
    "compare": "[Continuous integration](how-to/continuous-integration.md) ends with it.",
    "cache": "[Save and load](how-to/save-and-load.md) says what is in the cache.",
    "cache clear": "",
    "check": "[Bring your C++ codelets](cpp-codelets.md) says what is taken.",
    "port": "[Bring your C++ codelets](cpp-codelets.md#port-them) has an example.",
}
"""What stands behind the help of each command; a command that is not here is not in the page, and an error."""

VARIABLES: dict[str, str] = {
    "POPLAR_ENGINE_OPTIONS": "A JSON object of [engine options](options.md), which override what the program says.",
    "PYPOPLAR_CACHE_DIR": "The directory of the cache of compiled codelets, in place of the user's.",
    "PYPOPLAR_FULL_TRACEBACK": "If it is set, tracebacks show all lines of pypoplar, and not only yours: [errors](errors.md).",
    "POPTORCH_DEFAULT_OPTIONS": "A JSON object of options that every `poptorch.Options` begins with.",
    "POPTORCH_CACHE_DIR": "The directory where `poptorch` keeps compiled models, as `Options.enableExecutableCaching` says it.",
    "POPTORCH_LOG_LEVEL": "How much `poptorch` says: TRACE, DEBUG, INFO, WARN (if it is not set), ERR or OFF.",
    **{one.name: f"Set by `poprun`: {one.meaning}." for one in INSTANCE_VARIABLES},
    "POPLAR_TARGET_OPTIONS": "Set by `poprun`, for programs that ask: how IPUs are wired, as JSON. Nothing here reads it.",
    "OMPI_COMM_WORLD_SIZE": "The number of processes that MPI tells `poptorch.Options.Distributed`; more than one need `poprun`.",
    "OMPI_COMM_WORLD_RANK": "Which of them this is.",
}


def commands(context: click.Context) -> Iterator[click.Context]:
    """The context of every command below a group, a group before what it holds, in the order of the help."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.commands[name]
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH, **command.context_settings)
        yield inner
        if isinstance(command, click.Group):
            yield from commands(inner)


def help_text(context: click.Context) -> str:
    """What ``--help`` prints in a terminal of `WIDTH` columns."""
    return f"```text\n{context.command.get_help(context)}\n```"


def section(context: click.Context) -> str:
    more = MORE[context.command_path.partition(" ")[2]]
    return "\n\n".join(part for part in (f"## {context.command_path}", help_text(context), more) if part)


def page() -> str:
    whole = click.Context(main, info_name="pypoplar", terminal_width=WIDTH, **main.context_settings)
    sections = "\n\n".join(section(context) for context in commands(whole))
    variables = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    return f"""# The command line

<!-- Made by docs/tables.py from pypoplar/cli.py and docs/help_texts.py; a test compares them. -->

`pypoplar`, or `python -m pypoplar`, runs programs and tutorials, and shows the profiles that programs write. `--help` behind any
command prints what stands here.

{help_text(whole)}

A command ends with exit code 0; 1 after an error, of which a `PoplarError` and what the system says are told without a traceback; 2
where the command line itself is wrong; 130 when Ctrl-C stopped a program.

{sections}

## python -m pypoplar.poptorch

`python -m pypoplar.poptorch SCRIPT ARGUMENTS` and `python -m pypoplar.poptorch -m MODULE ARGUMENTS` run a program that says
`import poptorch`, as it is: [PyTorch](pytorch.md).

## poprun

`poprun` starts a program in several instances, which share its models' replicas: [several processes](how-to/processes.md).

```text
{poprun_help()}
```

## pytest

With pypoplar installed, pytest has the fixtures `ipu` and `mode` and the option `--pypoplar-mode`, which is `interpret`, `native`
or `both`: [testing](testing.md).

## Environment variables

| variable | what it says |
| --- | --- |
{variables}
"""
