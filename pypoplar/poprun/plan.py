"""What `poprun` starts: instances on hosts, with their replicas and their environment, and what is wrong with a command line."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.shares import Shares
from pypoplar.errors import InvalidOption
from pypoplar.options import ENVIRONMENT as ENGINE_OPTIONS
from pypoplar.poprun.arguments import Arguments
from pypoplar.poprun.hosts import file_hosts, listed_hosts
from pypoplar.poprun.poprun_options import IPUS_PER_REPLICA
from pypoplar.presets import PRESETS

HERE = "localhost"
MOST_IPUS = max(preset.num_ipus for preset in PRESETS.values())
THREADS = "pypoplar.threads"
CACHE = "POPTORCH_CACHE_DIR"
TARGET = {"ipuLinkDomainSize": "64", "ipuLinkConfiguration": "slidingWindow", "ipuLinkTopology": "torus", "gatewayMode": "true"}


class NoProgramError(InvalidOption):
    """The program of the command line cannot be started: `status` is what a shell gives then."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@frozen
class Instance:
    """A process that is started."""

    number: int
    host: str
    local: int  # its number among those of its host
    name: str  # what messages call it
    environment: Mapping[str, str]


@frozen
class LaunchPlan:
    """All that is started."""

    instances: tuple[Instance, ...]
    shares: Shares
    hosts: tuple[str, ...]
    domains: int
    program: tuple[str, ...]
    global_arguments: tuple[str, ...]
    local_arguments: tuple[str, ...]
    tagged: bool
    only: int | None
    as_root: bool


def make_plan(arguments: Arguments) -> LaunchPlan:
    """What a command line asks for; `InvalidOption` for all that it shows to be wrong."""
    replicas, count, ipus = (arguments.number(key) for key in ("num_replicas", "num_instances", "ipus_per_replica"))
    if replicas % count:
        low = [number for number in range(1, math.isqrt(replicas) + 1) if replicas % number == 0]
        fitting = [str(number) for number in sorted({*low, *(replicas // number for number in low)})]
        raise InvalidOption(
            f"--num-replicas {replicas} on --num-instances {count}: instances have equal parts of all replicas; "
            f"{replicas} can be on {_listed(fitting)} instances"
        )
    if ipus not in IPUS_PER_REPLICA:
        raise InvalidOption(f"--ipus-per-replica is {_listed([*map(str, IPUS_PER_REPLICA)])}, got {ipus}")
    if replicas * ipus > MOST_IPUS and not arguments.flag("offline_mode"):
        raise InvalidOption(
            f"{replicas} replicas of {ipus} IPU{'s' * (ipus > 1)} are {replicas * ipus} IPUs: the largest machine has {MOST_IPUS}; "
            "--offline-mode yes requires none"
        )
    hosts = _hosts(arguments)
    if count % len(hosts):
        raise InvalidOption(f"--num-instances {count} on {len(hosts)} hosts: hosts have equal parts of all instances")
    only = arguments.values["only_output_from_instance"]
    if only is not None and int(only) >= count:
        raise InvalidOption(f"--only-output-from-instance {only}: there are instances 0 to {count - 1}")
    shares, each = Shares(replicas, count), count // len(hosts)
    return LaunchPlan(
        tuple(
            Instance(
                number,
                hosts[number // each],
                number % each,
                shares.name(number),
                _environment(arguments, shares, number, number % each, each),
            )
            for number in range(count)
        ),
        shares,
        tuple(hosts),
        arguments.number("num_ilds"),
        checked_program(arguments.program),
        _words(arguments, "mpi_global_args"),
        _words(arguments, "mpi_local_args"),
        arguments.flag("tag_output"),
        None if only is None else int(only),
        arguments.flag("allow_run_as_root"),
    )


def _hosts(arguments: Arguments) -> list[str]:
    text, file = arguments.text("host"), arguments.text("hostfile")
    if arguments.values["host"] is not None and arguments.values["hostfile"] is not None:
        raise InvalidOption("--host and --hostfile: hosts are named by one of them")
    if arguments.values["hostfile"] is not None:
        return file_hosts(Path(file))
    return [HERE] if arguments.values["host"] is None else listed_hosts(text)


def _environment(arguments: Arguments, shares: Shares, number: int, local: int, on_host: int) -> dict[str, str]:
    each = shares.replicas // shares.processes
    values = {
        instance_environment.TOTAL_REPLICAS: shares.replicas,
        instance_environment.LOCAL_REPLICAS: each,
        instance_environment.IPUS_PER_REPLICA: arguments.number("ipus_per_replica"),
        instance_environment.REPLICA_OFFSET: number * each,
        instance_environment.LOCAL_INSTANCE: local,
        instance_environment.UNIFORM: 1,
    }
    total = shares.replicas * arguments.number("ipus_per_replica")
    found = {variable.name: str(value) for variable, value in values.items()}
    found["POPLAR_TARGET_OPTIONS"] = json.dumps({**TARGET, "instanceSize": str(total // shares.processes)})
    found |= _threads(on_host)
    if arguments.values["executable_cache_path"] is not None:
        found[CACHE] = os.path.abspath(arguments.text("executable_cache_path"))
    return found


def _threads(on_host: int) -> dict[str, str]:
    """The threads of each instance, as many as there are processors for it; unless the environment has a number."""
    threads = str(max(1, len(os.sched_getaffinity(0)) // on_host))
    found = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": threads}
    try:
        options = json.loads(os.environ.get(ENGINE_OPTIONS) or "{}")
    except ValueError:
        raise InvalidOption(
            f"the environment variable {ENGINE_OPTIONS} is no JSON object: {os.environ[ENGINE_OPTIONS]!r}"
        ) from None
    if not isinstance(options, dict):
        raise InvalidOption(f"the environment variable {ENGINE_OPTIONS} is no JSON object: {os.environ[ENGINE_OPTIONS]!r}")
    if THREADS not in options:
        found[ENGINE_OPTIONS] = json.dumps({**options, THREADS: threads})
    return found


def _words(arguments: Arguments, key: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(arguments.text(key)))
    except ValueError as problem:
        raise InvalidOption(f"--{key.replace('_', '-')}: {problem}") from None


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# The program


def checked_program(words: Sequence[str]) -> tuple[str, ...]:
    """The program with its arguments, as a path; `NoProgramError` where a shell would not find or start it."""
    if not words:
        raise InvalidOption("there is no program: poprun [options] program [arguments]")
    name = words[0]
    path = name if os.sep in name else shutil.which(name)
    if path is None or not os.path.exists(path):
        hint = f"; write: poprun ... python {name}" if os.path.isfile(name) or name.endswith(".py") else ""
        raise NoProgramError(f"the program {name!r} does not exist{hint}", 127)
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        hint = f"; write: poprun ... python {name}" if name.endswith(".py") else ""
        raise NoProgramError(f"the program {name!r} cannot be executed{hint}", 126)
    _check_script(path, words[1:])
    return (path, *words[1:])


WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def is_python(path: str) -> bool:
    """Whether a program is Python."""
    return os.path.basename(path).startswith("python") or os.path.realpath(path) == os.path.realpath(sys.executable)


def interpreter_options(words: Sequence[str]) -> int:
    """How many words behind ``python`` are options of its own, before a script, ``-m`` or ``-c``."""
    number = 0
    while number < len(words) and words[number].startswith("-") and words[number] not in ("-", "-m", "-c"):
        if words[number][:2] in ("-m", "-c"):
            break
        number += 2 if words[number] in WITH_VALUE else 1
    return min(number, len(words))


def _check_script(path: str, words: Sequence[str]) -> None:
    if not is_python(path):
        return
    script = words[interpreter_options(words) :][:1]
    if script and not script[0].startswith("-") and not os.path.exists(script[0]):
        raise NoProgramError(f"the script {script[0]!r} does not exist", 2)


def by_mpi4py(program: Sequence[str]) -> tuple[str, ...]:
    """The program by ``python -m mpi4py``, which ends all instances where one ends with an error; others are left as they are."""
    path, *words = program
    if not is_python(path):
        return tuple(program)
    own = interpreter_options(words)
    if words[own : own + 2] == ["-m", "mpi4py"] or not words[own:]:
        return tuple(program)
    return (path, *words[:own], "-m", "mpi4py", *words[own:])
