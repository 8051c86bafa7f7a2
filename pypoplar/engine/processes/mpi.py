"""mpi4py, which is asked for only where processes meet."""

from __future__ import annotations

import os
from typing import Any

from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.extras import install_command

LAUNCHED = {  # variables that launchers set, with the number of processes that they have started
    "PMI_SIZE": "MPICH",
    "OMPI_COMM_WORLD_SIZE": "Open MPI",
}


def load_mpi(what: str) -> Any:
    """The module ``mpi4py.MPI``, which starts MPI; `MissingFeature` where it is not installed, or finds no MPI."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as problem:
        missing = str(problem).strip().splitlines()[0] if isinstance(problem, RuntimeError) else "mpi4py is not installed"
        raise MissingFeature(f"{what} needs MPI: {missing}: {install_command('mpi')}") from None
    return MPI


def checked_communicator(comm: Any) -> Any:
    """A communicator of mpi4py's; `PoplarTypeError` for what is none, `InvalidOption` where its MPI is not the launcher's."""
    mpi = load_mpi("Engine(..., comm=...)")
    if isinstance(comm, mpi.Comm) and comm == mpi.COMM_NULL:
        raise PoplarTypeError("comm is MPI.COMM_NULL: this process is in no communicator")
    if not isinstance(comm, mpi.Intracomm):
        raise PoplarTypeError(f"comm is a communicator of mpi4py, MPI.COMM_WORLD, got {comm!r}")
    check_launcher(mpi)
    return comm


def check_launcher(mpi: Any) -> None:
    """`InvalidOption` if a launcher has started several processes, and each believes that it is alone."""
    size = mpi.COMM_WORLD.Get_size()
    for variable, launcher in LAUNCHED.items():
        started = os.environ.get(variable, "")
        if size == 1 and started.isdecimal() and int(started) > 1:
            library = mpi.Get_library_version().strip().splitlines()[0].strip()
            raise InvalidOption(
                f"the launcher of {launcher} has started {started} processes, but mpi4py has another MPI, {library}, in which each "
                "is alone: start them with the mpiexec of that MPI, or with poprun"
            )
