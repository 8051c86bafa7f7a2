"""``Options.Distributed``: models spread over processes; and ``Options.Jit``."""

from __future__ import annotations

import os
from typing import ClassVar, Self

from pypoplar.engine.processes import instance_environment
from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.tracebacks import public

OPEN_MPI = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")


@public
class DistributedOptions(OptionValues):
    """How many processes a model is spread over, and which one this is: 1 and 0. It is given by `Options.Distributed`.

    As in PopTorch the environment of Open MPI counts. A program that runs in several processes, each with a model of its own, calls
    `disable`; otherwise the options are refused where a data loader or a model takes them.
    """

    _group: ClassVar[str] = "Distributed"

    def __init__(self) -> None:
        super().__init__(num_distributed_processes=1, distributed_process_id=0, ipuof_configs={})
        self._spread = self._chosen = False
        if not instance_environment.is_set():
            self._from_environment(*OPEN_MPI)

    def _spread_over(self, process: int, processes: int) -> None:
        """Let so many instances of poprun share the replicas, of which this is one: see `popdist.poptorch.Options`."""
        self._spread, self._chosen = processes > 1, False
        self._keep(num_distributed_processes=processes, distributed_process_id=process)

    def disable(self) -> Self:
        """Each process has a model of its own, whatever the environment says."""
        return self._keep(num_distributed_processes=1, distributed_process_id=0)

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str) -> Self:
        """Take the numbers from these environment variables.

        Parameters
        ----------
        var_num_processes:
            The variable with the number of processes.
        var_process_id:
            The variable with the number of this one.

        Raises
        ------
        MissingFeature
            If there is more than one process.
        InvalidOption
            If a variable has no whole number.
        """
        option = self._option("setEnvVarNames")
        self._from_environment(checks.text(option, var_num_processes), checks.text(option, var_process_id))
        self.check_supported()
        return self

    def configureProcessId(self, process_id: int, num_processes: int) -> Self:
        """Set the number of this process and how many there are: a `DataLoader` gives its share of the data set.

        Models are refused with such options: those that processes share are started by poprun.

        Parameters
        ----------
        process_id:
            The number of this one, from 0 on.
        num_processes:
            How many there are.

        Raises
        ------
        InvalidOption
            If there is no process of that number.
        """
        option = self._option("configureProcessId")
        number = checks.whole_number(f"{option}: num_processes", num_processes, 1)
        which = checks.whole_number(f"{option}: process_id", process_id, 0, number - 1)
        self._spread, self._chosen = False, True
        return self._keep(num_distributed_processes=number, distributed_process_id=which)

    @property
    def numbered_by_program(self) -> bool:
        """Whether `configureProcessId` said which process this is."""
        return self._chosen

    def check_model(self) -> None:
        """Check that a model can be made: with others by poprun alone, or `MissingFeature`."""
        if self.num_distributed_processes > 1 and not self._spread:
            raise MissingFeature(
                f"Options.Distributed: a model that {self.num_distributed_processes} processes share is started with poprun, and "
                "takes popdist.poptorch.Options(); with configureProcessId there are data loaders alone"
            )

    def check_supported(self) -> None:
        """Check that the environment names one process: more are a `MissingFeature`."""
        if self.num_distributed_processes > 1 and not self._spread and not self._chosen:
            raise MissingFeature(
                f"Options.Distributed: the environment names {self.num_distributed_processes} processes: start them with poprun, "
                "and take popdist.poptorch.Options(); options.Distributed.disable() gives each process a model of its own"
            )

    def _from_environment(self, number: str, which: str) -> None:
        try:
            values = int(os.environ.get(number, "1")), int(os.environ.get(which, "0"))
        except ValueError:
            raise InvalidOption(
                f"Options.Distributed: the environment variables {number} and {which} are whole numbers, "
                f"got {os.environ.get(number)!r} and {os.environ.get(which)!r}"
            ) from None
        self._keep(num_distributed_processes=values[0], distributed_process_id=values[1])

    @property
    def processId(self) -> int:
        """The number of this process among those of the model."""
        return int(self.distributed_process_id)

    @property
    def numProcesses(self) -> int:
        """How many processes the model is spread over."""
        return int(self.num_distributed_processes)


@public
class JitOptions(OptionValues):
    """What PopTorch has given up: a model that is traced. It is given by `Options.Jit`."""

    _group: ClassVar[str] = "Jit"

    def traceModel(self, trace_model: bool) -> Self:
        """Models are exported, not traced.

        Parameters
        ----------
        trace_model:
            False, which changes nothing.

        Raises
        ------
        InvalidOption
            For True, as in PopTorch.
        """
        if checks.flag(self._option("traceModel"), trace_model):
            raise InvalidOption(
                f"{self._option('traceModel')}(True): models are exported, and cannot be traced; leave the call out"
            )
        return self
