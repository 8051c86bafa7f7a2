"""Sweeps: a function called for many cases, here or by an executor, and the table of what it gave."""

from __future__ import annotations

import csv
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from html import escape
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.braces import ordered
from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError, UnknownField
from pypoplar.extras import install_command
from pypoplar.files import AnyPath, written_whole
from pypoplar.prediction.prediction import Prediction
from pypoplar.report.escaping import escaped
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FAILED = "failed"  # the column of reasons
RESULT = "result"  # that of results which are neither predictions nor dicts
RATE = "items_per_second"
VALIDITY = "validity"


@frozen
class SweptCase:
    """A case and what it gave; given by `SweepTable.rows`.

    Attributes
    ----------
    case:
        The arguments.
    result:
        What the function returned, a `Prediction` without its report; None where it failed.
    failed:
        Why it failed: the error's name and message; empty where it did not.
    """

    case: Mapping[str, Any]
    result: Any = None
    failed: str = ""

    def values(self) -> dict[str, Any]:
        """Arguments and results as columns; a result that is called like an argument has ``result.`` before its name."""
        columns = {(f"{RESULT}.{name}" if name in self.case else name): value for name, value in self._results().items()}
        return {**self.case, **columns}

    def _results(self) -> dict[str, Any]:
        if self.failed:
            return {FAILED: self.failed}
        if isinstance(self.result, Prediction):
            return _columns_of(self.result)
        return dict(self.result) if isinstance(self.result, Mapping) else {RESULT: self.result}


def _columns_of(prediction: Prediction) -> dict[str, Any]:
    dearest = prediction.modules[0]
    return {
        RATE: prediction.items_per_second,
        "step_seconds": prediction.step_seconds,
        **prediction.shares,
        "share_of_peak": prediction.share_of_peak,
        "fits": not prediction.does_not_fit,
        "dearest": dearest.name,
        "bound_by": dearest.bound_by,
        VALIDITY: prediction.validity,
    }


@frozen(repr=False)
class SweepTable:
    """The table of a sweep, made by `sweep`: a row for each case, in the order in which the cases were given.

    Attributes
    ----------
    rows:
        The cases with what they gave.
    """

    rows: tuple[SweptCase, ...]

    def __repr__(self) -> str:
        failed = sum(bool(row.failed) for row in self.rows)
        return f"<Sweep of {counted(len(self.rows), 'case')}, {failed:,} failed>"

    def __str__(self) -> str:
        table = [self._shown_columns(), *self._cells()]
        widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
        lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
        return escaped("\n".join([*lines, *self._validity()]))

    def _shown_columns(self) -> list[str]:
        """All that differ from case to case, or may; what predictions stand on is told once."""
        return [name for name in self.columns if name != VALIDITY]

    def _cells(self) -> list[list[str]]:
        return [[shown(row.values().get(name)) for name in self._shown_columns()] for row in self.rows]

    def _validity(self) -> list[str]:
        return list(dict.fromkeys(row.result.validity for row in self.rows if isinstance(row.result, Prediction)))

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from pypoplar.report import notebook_tables  # only notebooks need it

        title = f"<b>sweep</b> of {counted(len(self.rows), 'case')}"
        notes = (f"<div>{escape(note)}</div>" for note in self._validity())
        return notebook_tables.block(title, notebook_tables.grid(self._shown_columns(), self._cells()), *notes)

    @property
    def columns(self) -> list[str]:
        """Names of the columns: arguments, results, and ``failed`` if any case did."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.values()))
        return [*(name for name in names if name != FAILED), *([FAILED] if FAILED in names else [])]

    @public
    def to_csv(self, path: AnyPath | None = None) -> str:
        """The table as comma-separated values, with a line of names.

        Parameters
        ----------
        path:
            A file to write it to; None writes none.

        Returns
        -------
        str
            The text.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.values() for row in self.rows)
        if path is not None:
            with written_whole(path) as part:
                part.write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def to_json(self) -> list[dict[str, object]]:
        """The rows as plain values, which JSON holds.

        Returns
        -------
        list[dict[str, object]]
            Of each row its case, its result (of a prediction what `Prediction.to_json` gives), and why it failed, or None. What
            JSON has no form for is text.
        """
        return [
            {"case": _plain(row.case), "result": None if row.failed else _plain(row.result), "failed": row.failed or None}
            for row in self.rows
        ]

    @public
    def plot(self, x: str | None = None, y: str = RATE) -> Figure:
        """Draw a column of results over one of arguments.

        Parameters
        ----------
        x:
            The argument along the axis; None: the first that differs between cases. Cases that differ in others are further lines.
        y:
            The result.

        Returns
        -------
        plotly.graph_objects.Figure
            Notebooks show it; its methods ``write_html`` and ``show`` do elsewhere.

        Raises
        ------
        UnknownField
            If there is no such column.
        MissingFeature
            Without the extra "report" (plotly).
        """
        try:
            from plotly import graph_objects
        except ModuleNotFoundError:
            raise MissingFeature(f"SweepTable.plot needs plotly: {install_command('report')}") from None
        arguments = list(dict.fromkeys(name for row in self.rows for name in row.case))
        varying = [name for name in arguments if len({repr(row.case.get(name)) for row in self.rows}) > 1] or arguments
        along = x if x is not None else next(iter(varying), "")
        for name in (along, y):
            if name not in self.columns:
                raise UnknownField(f"the sweep has no column {name!r}{nearest_or_all(name, self.columns)}")
        lines: dict[str, list[tuple[Any, Any]]] = {}
        for row in self.rows:
            values = row.values()
            if values.get(y) is not None and along in values:
                others = ", ".join(f"{name}={row.case.get(name)}" for name in varying if name != along)
                lines.setdefault(others, []).append((values[along], values[y]))
        figure = graph_objects.Figure()
        for others, points in lines.items():
            places, heights = zip(*points, strict=True)
            figure.add_scatter(x=places, y=heights, mode="lines+markers", name=others, showlegend=bool(others))
        return figure.update_layout(xaxis_title=along, yaxis_title=y, template="plotly_white")


def shown(value: Any) -> str:
    """A value as tables show it."""
    if value is None:
        return ""
    return (
        f"{value:.4g}"
        if isinstance(value, float) and abs(value) < 1e4
        else f"{value:,.0f}"
        if isinstance(value, float)
        else str(value)
    )


def _plain(value: Any) -> Any:
    """A value as JSON has it; text where it has none."""
    if isinstance(value, Prediction):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@public
def sweep(function: Callable[..., object], cases: Iterable[Mapping[str, object]], executor: Executor | None = None) -> SweepTable:
    """Call a function for each of many cases, and put what it gives into a table. Of a case that fails it has the reason.

    Parameters
    ----------
    function:
        Called as ``function(**case)``. It returns a `Prediction`, a dict of columns, or any other value.
    cases:
        The arguments of each call: ``[{"batch": 1}, {"batch": 2}]``.
    executor:
        What calls it, in threads or processes: any executor of `concurrent.futures`, such as a ``ProcessPoolExecutor``, or on a
        cluster ``mpi4py.futures.MPIPoolExecutor`` or Dask's ``client.get_executor()``. None: one call after the other, here.

    Returns
    -------
    SweepTable
        A row for each case, in their order.

    Raises
    ------
    PoplarTypeError
        If `function` cannot be called, a case is no dict of names, `executor` is none, or a case or the function cannot be
        pickled for another process.
    InvalidOption
        If there are no cases.

    Examples
    --------
    >>> from pypoplar import sweep
    >>> table = sweep(lambda size: {"square": size * size, "inverse": 1 / size}, [{"size": size} for size in (0, 2)])
    >>> print(table)
    size  square  inverse  failed
    0                      ZeroDivisionError: division by zero
    2     4       0.5
    """
    given = _checked(function, cases, executor)
    if executor is None:
        return SweepTable(tuple(outcome(function, case) for case in given))
    if isinstance(executor, ProcessPoolExecutor):
        _check_pickled(function, given)
    futures = [executor.submit(outcome, function, case) for case in given]
    try:
        return SweepTable(tuple(_collected(future, case) for future, case in zip(futures, given, strict=True)))
    except BaseException:  # an interrupt: what has not begun is not wanted any more
        for future in futures:
            future.cancel()
        raise


def outcome(function: Callable[..., Any], case: Mapping[str, Any]) -> SweptCase:
    """What a case gives, in whatever process this runs. The report of a prediction would be too large to keep of each."""
    try:
        result = function(**case)
    except Exception as problem:
        return SweptCase(case, failed=reason(problem))
    return SweptCase(case, evolve(result, report=None) if isinstance(result, Prediction) else result)


def reason(problem: BaseException) -> str:
    """An error's name and message."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


def _collected(future: Future[SweptCase], case: Mapping[str, Any]) -> SweptCase:
    """The row of a case; where it did not arrive, as its process has ended or its result cannot be pickled, the reason."""
    try:
        return future.result()
    except Exception as problem:
        return SweptCase(case, failed=reason(problem))


def _checked(function: Any, cases: Any, executor: Any) -> list[dict[str, Any]]:
    if not callable(function):
        raise PoplarTypeError(f"sweep: expected a function to call for each case, got {function!r}")
    if executor is not None and not isinstance(executor, Executor):
        raise PoplarTypeError(f"sweep: an executor is one of concurrent.futures, such as ProcessPoolExecutor(2), got {executor!r}")
    if isinstance(cases, Mapping):
        raise PoplarTypeError('sweep: the cases are a list of dicts, one for each call, such as [{"batch": 1}, {"batch": 2}]')
    listed = list(ordered(cases, "the cases of a sweep", '[{"batch": 1}, {"batch": 2}]'))
    for number, case in enumerate(listed):
        if not isinstance(case, Mapping) or not all(isinstance(name, str) for name in case):
            raise PoplarTypeError(f"sweep: case {number} is a dict of arguments by name, got {case!r}")
    if not listed:
        raise InvalidOption("sweep: there are no cases")
    return [dict(case) for case in listed]


def _check_pickled(function: Callable[..., Any], cases: Sequence[Mapping[str, Any]]) -> None:
    """That another process can be told of all of it: before any of them begins, as they may take long."""
    named = [("the function", function)]
    named += [(f"{name!r} of case {number}", value) for number, case in enumerate(cases) for name, value in case.items()]
    for what, value in named:
        try:
            pickle.dumps(value)
        except Exception as problem:  # whatever a class of the user's raises
            raise PoplarTypeError(
                f"sweep: {what} cannot be pickled for another process ({problem}): define functions and classes in a module,"
                " and give numbers and texts as arguments"
            ) from None
