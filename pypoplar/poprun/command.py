"""The `poprun` command."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from attrs import define, field

from pypoplar.errors import InvalidOption, PoplarError
from pypoplar.poprun.arguments import Arguments, parse, write_config
from pypoplar.poprun.guard import MARK
from pypoplar.poprun.launch_line import launch_line
from pypoplar.poprun.launchers import find_launcher
from pypoplar.poprun.plan import LaunchPlan, NoProgramError, is_python, make_plan
from pypoplar.poprun.poprun_options import OPTIONS, help_text
from pypoplar.poprun.topology import topology

MISTAKE, FAILED, INTERRUPTED = 2, 1, 130
STDERR = 2  # the last of the files that every program has
PATIENCE = 0.4  # seconds in which a launcher ends by itself when an instance has failed
END = ((signal.SIGINT, 0.8), (signal.SIGTERM, 0.4), (signal.SIGKILL, 1.0))  # what tells it to end, and seconds until the next


def main(words: Sequence[str] | None = None) -> None:
    """Start a program in several instances; ends with its exit status."""
    _open_closed_streams()
    sys.exit(run(sys.argv[1:] if words is None else words))


def _open_closed_streams() -> None:
    """What the shell has closed of input, output and errors goes nowhere: else another file would get its number."""
    while (file := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(file, True)
    os.close(file)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def run(words: Sequence[str]) -> int:
    """The same; the exit status is returned."""
    try:
        arguments = parse(words)
        if arguments.asks:
            print(help_text() if arguments.asks == "help" else _version())
            return 0
        if arguments.values["export_config"] is not None:
            write_config(arguments, Path(arguments.text("export_config")))
            if not arguments.program:
                return 0
        return _start(arguments)
    except NoProgramError as problem:
        _say(str(problem))
        return problem.status
    except PoplarError as problem:
        _say(str(problem))
        return MISTAKE


def _version() -> str:
    from importlib import metadata  # late: it takes a tenth of the time until the program starts

    return f"poprun of pypoplar {metadata.version('pypoplar')}"


def _start(arguments: Arguments) -> int:
    plan = make_plan(arguments)
    line = [] if len(plan.instances) == 1 else launch_line(plan, find_launcher(*plan.program[: is_python(plan.program[0])]))
    if arguments.verbosity:
        _tell(arguments, plan)
    if arguments.verbosity > 1:
        _say(shlex.join(line or plan.program))
    if arguments.flag("print_topology"):
        print(topology(plan), flush=True)
    if not line:
        only = plan.instances[0]
        return _replace(plan.program, only.environment)
    return Launch(plan).run(line)


def _replace(program: Sequence[str], variables: Mapping[str, str]) -> int:
    """Become the program, where there is one instance."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program[0], list(program), {**os.environ, **variables})
    except OSError as problem:
        _say(f"the program {program[0]!r} cannot be executed: {problem.strerror}")
        return 126


def _tell(arguments: Arguments, plan: LaunchPlan) -> None:
    count, replicas = len(plan.instances), plan.shares.replicas
    _say(f"{replicas} replica{'s' * (replicas > 1)} in {count} instance{'s' * (count > 1)} on {', '.join(plan.hosts)}")
    for option in OPTIONS:
        if not option.works and option.key in arguments.given:
            _say(f"{option.name} changes nothing on a simulated machine")


@define(eq=False)
class Launch:
    """The launcher as it runs. What ends this process, or an instance by an error, ends it and all that it has started."""

    plan: LaunchPlan
    _received: list[int] = field(factory=list)  # signals
    _ended: list[tuple[int, int]] = field(factory=list)  # instances that ended by an error or signal, and how
    _told: bool = False  # an instance has said what its error is

    def run(self, line: Sequence[str]) -> int:
        """The exit status for the shell."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            launcher = _launched(line)
            assert launcher.stderr is not None
            pump = threading.Thread(target=self._pump, args=(launcher.stderr,), daemon=True)
            pump.start()
            status = self._waited(launcher)
            pump.join(0.5)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._received:
            return 128 + self._received[0]
        return self._told_status(status)

    def _told_status(self, status: int) -> int:
        if not self._ended:
            return FAILED if status < 0 or status >= 128 else status
        number, ended = self._ended[0]
        name = self.plan.instances[number].name
        if ended < 0:
            sys.stderr.write(f"{name}: killed by signal {-ended} ({signal.Signals(-ended).name})\n")
            return FAILED
        if not self._told:
            sys.stderr.write(f"{name}: ended with exit status {ended}\n")
        return ended

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._received.append(number)

    def _pump(self, source: IO[bytes]) -> None:
        """Pass on what the launcher and instances write, but for what guards tell."""
        for line in source:
            begin, mark, rest = line.partition(MARK.encode())
            if mark:
                number, status = rest.split()[:2]
                self._ended.append((int(number), int(status)))
                line = begin
            self._told = self._told or any(f"{one.name}: ".encode() in line for one in self.plan.instances)
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()

    def _waited(self, launcher: subprocess.Popen[bytes]) -> int:
        """Its status, once it has ended; where it is to end, it is told so, more and more urgently."""
        deadline, steps = float("inf"), list[tuple[int, float]]()
        while True:
            try:
                return launcher.wait(0.02 if self._ended or self._received else 0.1)
            except subprocess.TimeoutExpired:
                now = time.monotonic()
            if deadline == float("inf") and (self._received or self._ended):
                deadline = now if self._received else now + PATIENCE
                steps = [*(END if self._received else END[1:])]
            if now >= deadline and steps:
                number, patience = steps.pop(0)
                launcher.send_signal(number)
                deadline = now + patience


def _launched(line: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(line, stderr=subprocess.PIPE)
    except OSError as problem:  # it is too long with thousands of instances
        raise InvalidOption(f"the launcher {line[0]!r} cannot be started with these instances: {problem.strerror}") from None


def _say(text: str) -> None:
    sys.stderr.write("".join(f"poprun: {line}\n" for line in text.splitlines()))
    sys.stderr.flush()
