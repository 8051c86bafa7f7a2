"""`predict`: what a program would cost, without running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pypoplar.arrays.freed_memory import keeping_all
from pypoplar.engine.cost.class_runs import Samples
from pypoplar.engine.cost_engine import CostEngine
from pypoplar.engine.engine import compileGraph
from pypoplar.options import EngineOptions, Options, OptionValue
from pypoplar.prediction.prediction import Prediction, prediction_of
from pypoplar.program.assumptions import Assumption
from pypoplar.target import check_count
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from pypoplar.executable.executable import Executable
    from pypoplar.graph.graph import Graph
    from pypoplar.program import Program
    from pypoplar.report.report import Report

OPTIONS: dict[str, OptionValue] = {"pypoplar.run_out_of_memory": True, "profiler.includeFlopEstimates": True}
"""Engine options of predictions, unless they are given otherwise."""


@public
def predict(
    graph: Graph,
    programs: Program | Iterable[Program],
    *,
    items: int = 1,
    program: int = 0,
    sample: Samples | None = None,
    assumptions: Iterable[Assumption] = (),
    options: Options = None,
    synthetic_data: bool = False,
) -> Prediction:
    """Find what a run of a program would cost, without running it: nothing is loaded, no data is needed.

    Where the program does not fit, it is priced all the same, as on tiles with more memory, and `Prediction.does_not_fit` says so;
    the engine option ``pypoplar.run_out_of_memory`` as False makes it an error.

    Parameters
    ----------
    graph:
        A `Graph`, of any target: for one that there is not, see `Target.evolve`.
    programs:
        One program or a list of them.
    items:
        How many items a run treats, 1 at least: images, samples, rows.
    program:
        Which of the programs is run, once.
    sample:
        As of `Engine`, for codelets whose cycles depend on data: by codelet and field the least and the largest value.
    assumptions:
        What is assumed of control that data decide: see `assume`, `assume_count`, `assume_share`.
    options:
        Engine options, as `Engine` takes them.
    synthetic_data:
        Leave out steps that stream from and to the host, as if data were there.

    Returns
    -------
    Prediction
        Items in a second, and where the time goes.

    Raises
    ------
    InvalidOption
        If `items` is no whole number of 1 at least, for an unknown option, and for a sample or assumptions that are none.
    ControlProgramError
        Where data decide what it costs, and nobody has said which: what to say is told.
    PoplarIndexError
        If there is no such program.
    ApplicationRuntimeError
        If the program takes no cycles.
    GraphConnectionError, InvalidTileMapping, GraphCycleError
        When the graph is not a program of the machine, as from `Engine`.

    Examples
    --------
    >>> from pypoplar import FLOAT, Graph, IPUModel, popops
    >>> from pypoplar.poputil import mapTensorLinearly
    >>> from pypoplar.program import Sequence
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> popops.addCodelets(graph)
    >>> x = graph.addVariable(FLOAT, [4096], "x")
    >>> mapTensorLinearly(graph, x)
    >>> add = Sequence()
    >>> popops.addInPlace(graph, x, x, add, "double")
    >>> prediction = predict(graph, add, items=4096)
    >>> prediction.items_per_second > 0, prediction.modules[0].name
    (True, 'double/add')
    """
    count = check_count("items", items)

    def compiled(chosen: EngineOptions) -> Executable:
        return compileGraph(graph, programs, chosen, mode="cost", assumptions=assumptions)

    with keeping_all():
        return prediction_by(compiled, count, program=program, sample=sample, options=options, synthetic_data=synthetic_data)


def prediction_by(
    compiled: Callable[[EngineOptions], Executable],
    items: int,
    *,
    name: str = "",
    program: int = 0,
    sample: Samples | None = None,
    options: Options = None,
    synthetic_data: bool = False,
) -> Prediction:
    """The prediction of one run of what is `compiled` for mode "cost", with the options that predictions have.

    `name` is the report's; the others are those of `predict`.
    """
    parsed = EngineOptions.parse(options)
    chosen = parsed.changed({name: value for name, value in OPTIONS.items() if name not in dict(parsed.given)})
    report = _priced(compiled(chosen), chosen, program, sample, name)
    return prediction_of(report, items, synthetic_data=synthetic_data)


def _priced(executable: Executable, options: EngineOptions, program: int, sample: Samples | None, name: str) -> Report:
    engine = CostEngine(executable, options=options, name=name, sample=sample)
    engine.load()
    engine.run(program)
    return engine.getReport()
