"""What is no communicator is refused, and so is a launcher of another MPI than mpi4py has."""

from types import SimpleNamespace

import pytest

from pypoplar import InvalidOption, PoplarTypeError
from pypoplar.engine.processes import instance_peers, mpi


class Comm:
    """A communicator of so many processes."""

    def __init__(self, size=1):
        self.size = size

    def Get_size(self):
        return self.size


class Intracomm(Comm):
    """One whose processes are of one group."""


@pytest.fixture
def library(monkeypatch):
    found = SimpleNamespace(
        Comm=Comm, Intracomm=Intracomm, COMM_NULL=Comm(), COMM_WORLD=Intracomm(), Get_library_version=lambda: "MPICH 5.0\nmore"
    )
    monkeypatch.setattr(mpi, "load_mpi", lambda what: found)
    for variable in mpi.LAUNCHED:
        monkeypatch.delenv(variable, raising=False)
    return found


@pytest.mark.parametrize("comm", [5, True, "MPI.COMM_WORLD", Comm(2)])
def test_what_is_no_communicator_is_refused(library, comm):
    with pytest.raises(PoplarTypeError, match="comm is a communicator of mpi4py"):
        mpi.checked_communicator(comm)


def test_the_communicator_of_no_process_is_refused_by_its_name(library):
    with pytest.raises(PoplarTypeError, match="COMM_NULL: this process is in no communicator"):
        mpi.checked_communicator(library.COMM_NULL)


def test_processes_of_a_launcher_of_another_mpi_which_believe_that_they_are_alone_are_told(library, monkeypatch):
    assert mpi.checked_communicator(library.COMM_WORLD) is library.COMM_WORLD
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(InvalidOption, match="Open MPI has started 2 processes, but mpi4py has another MPI"):
        mpi.checked_communicator(library.COMM_WORLD)
    library.COMM_WORLD.size = 2
    assert mpi.checked_communicator(library.COMM_WORLD) is library.COMM_WORLD


def test_instances_that_mpi_does_not_know_of_are_told(library, monkeypatch):
    monkeypatch.setattr(instance_peers, "load_mpi", lambda what: library)
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "4")
    monkeypatch.setenv("POPDIST_NUM_LOCAL_REPLICAS", "2")
    with pytest.raises(InvalidOption, match="poprun has told this process of 2 instances, and MPI has 1: the launcher and mpi4py"):
        instance_peers.instance_peers()
