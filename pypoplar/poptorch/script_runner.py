"""``python -m pypoplar.poptorch SCRIPT``: programs that import ``poptorch`` run as they are."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import NoReturn

from attrs import frozen

from pypoplar.poptorch.poptorch_name import install


@frozen
class ScriptNames:
    """What programs import of Graphcore's, how it is given to them, and the command that does so."""

    command: str
    meaning: str
    give: Callable[[], None]

    @property
    def usage(self) -> str:
        """What ``--help`` prints."""
        return (
            f"usage: {self.command} SCRIPT [ARGUMENTS]\n       {self.command} -m MODULE [ARGUMENTS]\n\n"
            f"Runs a program written for {self.meaning}\n"
        )


POPTORCH = ScriptNames(
    "python -m pypoplar.poptorch",
    "PopTorch as it is, on the simulated IPU: what it imports as poptorch is pypoplar.poptorch.",
    install,
)
USAGE = POPTORCH.usage
USAGE_ERROR = 2  # the exit code of Python's own command line


def main(arguments: Sequence[str], names: ScriptNames = POPTORCH) -> None:
    """Run what the command line names as the main program, for which `names` are given, and end the process if that fails."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(names.usage, end="")
        return
    if not arguments:
        _give_up(names.usage.rstrip())
    first, *rest = arguments
    if first == "-m":
        if not rest:
            _give_up(f"{names.command}: -m takes the name of a module")
        _run(lambda: _run_module(rest[0], rest[1:]), names)
    elif first.startswith("-"):
        _give_up(f"{names.command}: no option is called {first!r}\n{names.usage.rstrip()}")
    elif not os.path.exists(first):
        _give_up(f"{names.command}: there is no script {first!r}")
    elif os.path.isdir(first) and not os.path.isfile(os.path.join(first, "__main__.py")):
        _give_up(f"{names.command}: the directory {first!r} has no __main__.py")
    else:
        _run(lambda: _run_script(first, rest), names)


def _give_up(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(USAGE_ERROR)


def _run_script(path: str, arguments: Sequence[str]) -> None:
    """A file as Python itself runs it: in a module that lives on, for functions that are called when it has ended."""
    sys.argv[:] = [path, *arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        _search_first(None)
        runpy.run_path(path, run_name="__main__")  # which puts them into the search path
        return
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    _search_first(os.path.dirname(os.path.realpath(path)))
    module = ModuleType("__main__")
    place = os.path.abspath(path)
    vars(module).update(
        __file__=place, __cached__=None, __builtins__=builtins, __loader__=SourceFileLoader("__main__", place), __package__=None
    )
    sys.modules["__main__"] = module
    exec(compile(source, place, "exec", dont_inherit=True), vars(module))


def _run_module(name: str, arguments: Sequence[str]) -> None:
    """A module by its name, as ``python -m`` does it: the working directory stays first in the search path."""
    sys.argv[:] = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _search_first(directory: str | None) -> None:
    """Put a directory where the working directory is in the search path, unless Python was told to have neither there."""
    if not sys.flags.safe_path:
        sys.path[:1] = [] if directory is None else [directory]


def _run(program: Callable[[], None], names: ScriptNames) -> None:
    """Call `program`. Python shows an error of its own from its first frame on, through the hook that the program may have set."""
    names.give()
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        trace = _of_program(error.__traceback__)
        if trace is None and isinstance(error, ImportError | OSError):
            print(f"{names.command}: {error}", file=sys.stderr)  # there is no such module, or no right to read the script
            sys.exit(1)
        hook = sys.excepthook
        sys.excepthook = lambda kind, value, _: hook(kind, value.with_traceback(trace), trace)
        raise


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without what leads from this module to the program."""
    while trace is not None and _leads_there(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _leads_there(file: str) -> bool:
    return file in (__file__, runpy.__file__) or file.startswith("<frozen ")
