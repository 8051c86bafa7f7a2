"""What the runs of each of several replicas took altogether."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    replicas = tuple(
        ReplicaExecution(number, Total(sum(_cycles_of(executable, account) for account in runs)))
        for number, runs in accounts.items()
    )
    return evolve(report, execution=evolve(report.execution, replicas=replicas))


def _cycles_of(executable: Executable, account: RunAccount) -> int:
    """Until the latest IPU is done: what any of them took, with its waiting."""
    steps, counted = executable.ipu_steps, np.array([step.kind != "handle" for step in executable.steps])
    if steps is None:
        fixed = np.array([step.fixed_cycles for step in executable.steps], np.int64)
        return int((account.executions * fixed + account.compute_cycles)[counted].sum())
    shares = np.flatnonzero((steps.ipu == 0) & counted[steps.step])
    spent = account.executions[steps.step] * steps.fixed_cycles + account.share_computed + account.share_waited
    return int(account.ipu_waited[0]) + int(spent[shares].sum())
