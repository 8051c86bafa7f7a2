"""What the runs of each of several replicas took altogether."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import evolve

from pypoplar.executable.executable import Executable
from pypoplar.report.execution import ReplicaExecution
from pypoplar.report.memory_report import Total
from pypoplar.report.report import Report
from pypoplar.report.run_account import RunAccount


def with_replicas(report: Report, executable: Executable, accounts: Mapping[int, Sequence[RunAccount]]) -> Report:
    """The report of one replica with the cycles of each, of which there are accounts by its number."""
    if report.execution is None:
        return report
    cycles_of = _cycles_of(executable)
    replicas = tuple(ReplicaExecution(number, Total(sum(map(cycles_of, runs)))) for number, runs in accounts.items())
    return evolve(report, execution=evolve(report.execution, replicas=replicas))


def _cycles_of(executable: Executable) -> Callable[[RunAccount], int]:
    """What the runs of an account took until the latest IPU was done: what any of them took, with its waiting.

    What is the same for all accounts is found once.
    """
    steps, counted = executable.ipu_steps, np.array([step.kind != "handle" for step in executable.steps])
    if steps is None:
        whole = np.array([step.fixed_cycles for step in executable.steps], np.int64)
        return lambda account: int((account.executions * whole + account.compute_cycles)[counted].sum())
    step, fixed = steps.step, steps.fixed_cycles
    shares = np.flatnonzero((steps.ipu == 0) & counted[step])

    def of_first_ipu(account: RunAccount) -> int:
        spent = account.executions[step] * fixed + account.share_computed + account.share_waited
        return int(account.ipu_waited[0]) + int(spent[shares].sum())

    return of_first_ipu
