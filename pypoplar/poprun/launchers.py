"""The launcher of the MPI that mpi4py has: MPICH's or Open MPI's."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.extras import install_command

MPICH, OPEN_MPI = "MPICH", "Open MPI"


@frozen
class Launcher:
    """A command that starts processes of an MPI."""

    kind: str  # MPICH or OPEN_MPI
    path: str


def find_launcher(python: str = sys.executable) -> Launcher:
    """That of the MPI which an interpreter's mpi4py has; `MissingFeature` where there is none. MPI is not started for it."""
    return _found(python, os.environ.get("PATH", ""), os.environ.get("MPI4PY_LIBMPI", ""))


@functools.cache
def _found(python: str, path: str, library: str) -> Launcher:
    kind, where = _library(python)
    beside = [str(Path(where).parent.parent / "bin")] if where else []
    places = os.pathsep.join([*beside, str(Path(python).parent), path])
    names = ("mpiexec.hydra", "mpiexec") if kind == MPICH else ("mpiexec", "mpirun")
    for directory in places.split(os.pathsep):
        for name in names:
            found = shutil.which(name, path=directory) if directory else None
            if found is not None and (name == "mpiexec.hydra" or _kind_of(found) == kind):
                return Launcher(kind, found)
    raise MissingFeature(f"mpi4py has the library of {kind}, whose mpiexec is not to be found: {install_command('mpi')}")


def _library(python: str) -> tuple[str, str]:
    """Which MPI the library is of that mpi4py would load, and where it is, if that is known."""
    script = (
        "from mpi4py import rc\n"
        "rc.initialize = False\n"
        "from mpi4py import MPI\n"
        "print(MPI.Get_library_version().split(chr(10))[0])\n"
        "for line in open('/proc/self/maps'):\n"
        "    if 'libmpi.' in line or 'libmpi_abi' in line or 'libmpich' in line:\n"
        "        print(line.split(maxsplit=5)[5].strip()); break\n"
    )
    asked = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    lines = asked.stdout.splitlines()
    if asked.returncode or not lines:
        reason = asked.stderr.strip().splitlines()[-1:] or ["mpi4py is not installed"]
        raise MissingFeature(f"no MPI is to be found ({reason[0]}): {install_command('mpi')}")
    kind = OPEN_MPI if "Open MPI" in lines[0] else MPICH
    return kind, lines[1] if len(lines) > 1 else ""


def _kind_of(launcher: str) -> str:
    asked = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    text = asked.stdout + asked.stderr
    return OPEN_MPI if "Open MPI" in text or "open-mpi" in text else MPICH if "HYDRA" in text else ""
