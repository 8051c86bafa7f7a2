"""The line that starts all instances: one block for each, in the words of its launcher."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pypoplar.errors import InvalidOption
from pypoplar.poprun.guard import launchable_word
from pypoplar.poprun.launchers import MPICH, Launcher
from pypoplar.poprun.plan import HERE, Instance, LaunchPlan, by_mpi4py

GUARD = Path(__file__).with_name("guard.py")


def launch_line(plan: LaunchPlan, launcher: Launcher) -> list[str]:
    """The launcher with its arguments; `InvalidOption` where it would refuse to run as root."""
    if launcher.kind == MPICH:
        begin, block = _mpich_hosts(plan), _mpich_block
    else:
        if os.geteuid() == 0 and not plan.as_root:
            raise InvalidOption("Open MPI does not run as root unless it is told so: --allow-run-as-root yes")
        begin = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", *(["--allow-run-as-root"] if plan.as_root else [])]
        block = _open_mpi_block
    line = [launcher.path, *begin, *plan.global_arguments]
    for instance in plan.instances:
        line += [":"] * (instance.number > 0) + block(plan, instance) + _guarded(plan, instance)
    return line


def _mpich_hosts(plan: LaunchPlan) -> list[str]:
    """All hosts, each with as many processes as it has instances: blocks take them in this order, and cannot name their own."""
    if plan.hosts == (HERE,):
        return []
    each = len(plan.instances) // len(plan.hosts)
    return ["-hosts", ",".join(f"{host}:{each}" for host in plan.hosts)]


def _mpich_block(plan: LaunchPlan, instance: Instance) -> list[str]:
    return ["-n", "1", *plan.local_arguments]


def _open_mpi_block(plan: LaunchPlan, instance: Instance) -> list[str]:
    host = [] if instance.host == HERE else ["--host", instance.host]
    passed = [word for name in PASSED if name in os.environ for word in ("-x", name)]
    return ["-n", "1", *host, *passed, *plan.local_arguments]


PASSED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "POPLAR_ENGINE_OPTIONS", "POPTORCH_DEFAULT_OPTIONS", "PYPOPLAR_CACHE_DIR")
"""What Open MPI does not pass on to other hosts by itself."""


def _guarded(plan: LaunchPlan, instance: Instance) -> list[str]:
    tagged, shown = "1" if plan.tagged else "0", "1" if plan.only in (None, instance.number) else "0"
    variables = json.dumps(dict(instance.environment))
    program = map(launchable_word, by_mpi4py(plan.program))
    return [sys.executable, "-I", "-S", str(GUARD), instance.name, tagged, shown, variables, *program]
