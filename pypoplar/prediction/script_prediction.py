"""Predictions of scripts: each runs until it makes its first engine or calls its first model, and is stopped there."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from pypoplar import resources
from pypoplar.errors import ApplicationRuntimeError, InvalidOption
from pypoplar.executable.executable import Executable
from pypoplar.graph.graph import Graph
from pypoplar.options import EngineOptions, Options
from pypoplar.prediction.predicting import predict
from pypoplar.prediction.prediction import Prediction, prediction_of
from pypoplar.prediction.sweeps import SweepTable, sweep
from pypoplar.program import Program
from pypoplar.target import TargetValue, attribute_of, what_if
from pypoplar.tracebacks import is_ours
from pypoplar.watchers import unwatched, watched

POPTORCH = str(resources.PACKAGE / "poptorch" / "script_path")
"""Where scripts that say ``import poptorch`` find it; nothing there is imported unless they do."""
FOR_RUNS = ("autoReport.", "pypoplar.races")  # options that a script gives for its run alone


class Stopped(BaseException):
    """Ends a script; no ``except Exception`` of its own holds it up."""


@frozen
class ScriptCase:
    """How a script is predicted.

    `items` is how many a run of a graph's program treats; of a model its batches say it. `model` is the number of the model, from
    1 in the order in which they are made, 0 for the only one. `target` are changes of the targets that the script makes.
    """

    path: Path
    arguments: Sequence[str] = ()
    items: int | None = None
    synthetic_data: bool = False
    model: int = 0
    target: Mapping[str, TargetValue] = field(factory=dict)


def predict_script(case: ScriptCase) -> Prediction:
    """The prediction of a script. What it prints goes to stderr.

    An error that the script raises before comes through as it is, and so does what the prediction refuses.
    """
    watcher = ScriptWatcher(case)
    with what_if(case.target), watched(watcher), _settings_kept(), _as_main(case), redirect_stdout(sys.stderr):
        try:
            runpy.run_path(str(case.path), run_name="__main__")
        except Stopped as stop:
            if watcher.problem is not None:  # as if it had been raised where the script was stopped
                raise watcher.problem.with_traceback(stop.__traceback__) from watcher.problem.__cause__
        except SystemExit as end:
            if watcher.found is None and watcher.problem is None and end.code not in (None, 0):
                raise ApplicationRuntimeError(f"{case.path} ended with {end.code!r} before there was anything to predict") from None
    if watcher.problem is not None:
        raise watcher.problem
    if watcher.found is None:
        raise ApplicationRuntimeError(watcher.nothing())
    return watcher.found


def predict_cases(
    base: ScriptCase, arguments: Mapping[str, Sequence[str]], targets: Mapping[str, Sequence[str]], processes: int = 1
) -> SweepTable:
    """Predictions of a script for all combinations of arguments, which it gets as ``--NAME VALUE``, and changes of its targets.

    With several processes each takes its share; else one script runs after the other, here.
    """
    check_names(arguments, targets)
    named = {**arguments, **targets}
    values = [[written_value(text) for text in texts] for texts in named.values()]
    cases = [dict(zip(named, chosen, strict=True)) for chosen in product(*values)]
    function = partial(predict_case, base, tuple(targets))
    if processes == 1:
        return sweep(function, cases)
    with ProcessPoolExecutor(processes, get_context("spawn")) as executor:
        return sweep(function, cases, executor)


def check_names(arguments: Iterable[str], targets: Iterable[str]) -> None:
    """Refuse what is no attribute of a target, and a name that would be an argument of the script, too."""
    for name in targets:
        attribute_of(name)
        if name in arguments:
            raise InvalidOption(f"{name!r} is swept twice: as an argument of the script and of its target")


def predict_case(base: ScriptCase, targets: Sequence[str], **case: Any) -> Prediction:
    """The prediction of a script for one case."""
    added = [text for name, value in case.items() if name not in targets for text in (f"--{name}", str(value))]
    changed = {name: value for name, value in case.items() if name in targets}
    return predict_script(evolve(base, arguments=(*base.arguments, *added), target=changed))


def written_value(text: str) -> Any:
    """A number if the text is one, True or False, else the text itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), text)


@define
class ScriptWatcher:
    """Is told what a script makes, and predicts the first engine or the chosen model of it."""

    case: ScriptCase
    models: list[tuple[Any, str]] = field(factory=list)  # and the script's line that made each
    found: Prediction | None = None
    problem: Exception | None = None

    def compiles(self, graph: Graph, programs: Program | Iterable[Program], options: Options) -> None:
        """Predict program 0 of a graph, unless a model is to be predicted."""
        if self.case.model:
            return
        given = {name: value for name, value in EngineOptions.parse(options).given if not name.startswith(FOR_RUNS)}
        items = 1 if self.case.items is None else self.case.items
        self._stop(lambda: predict(graph, programs, items=items, options=given, synthetic_data=self.case.synthetic_data))

    def takes(self, executable: Executable) -> None:
        """Refuse an executable, which has no graph to be priced anew, unless a model is to be predicted."""
        if self.case.model:
            return
        self._stop(lambda: _refuse_executable(self.case.path))

    def makes(self, model: Any) -> None:
        """Remember a model."""
        self.models.append((model, _script_line(self.case.path)))

    def calls(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Predict a model, if it is the one; with several of them, one has to be chosen."""
        number = next(number for number, (one, _) in enumerate(self.models, 1) if one is model)
        if self.case.model not in (0, number):
            return
        self._stop(lambda: self._of_model(model, args, kwargs))

    def _of_model(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prediction:
        if self.case.model == 0 and len(self.models) > 1:
            raise ApplicationRuntimeError(
                f"{self.case.path} makes {len(self.models)} models; say which with --model:\n{self._listed()}"
            )
        if self.case.items is not None:
            raise InvalidOption("the items of a model are those of its batches; --items is for graphs")
        prediction = model.predict(*args, **kwargs)
        assert isinstance(prediction, Prediction)
        if not self.case.synthetic_data:
            return prediction
        assert prediction.report is not None
        return prediction_of(prediction.report, prediction.items, synthetic_data=True)

    def _stop(self, predicted: Callable[[], Prediction]) -> None:
        """Predict while all that the script has made is there, and end it."""
        if self.found is None and self.problem is None:
            try:
                with unwatched():
                    self.found = predicted()
            except Exception as problem:
                self.problem = problem
        raise Stopped

    def nothing(self) -> str:
        """Why there is no prediction of a script that has come to its end."""
        if not self.models:
            made = (
                f"makes no model, of which --model {self.case.model} would be one"
                if self.case.model
                else "makes no Engine and calls no model"
            )
            return f"{self.case.path} {made}: there is nothing to predict"
        which = "the model" if self.case.model == 0 else f"model {self.case.model}"
        return f"{self.case.path} never calls {which} that is to be predicted; it makes\n{self._listed()}"

    def _listed(self) -> str:
        return "\n".join(f"  {number}: {_named(model)} at {line}" for number, (model, line) in enumerate(self.models, 1))


def _named(model: Any) -> str:
    kind = "inferenceModel" if model._optimizer is None else "trainingModel"
    return f"{kind} of {type(model.model).__name__}"


def _refuse_executable(path: Path) -> Prediction:
    raise ApplicationRuntimeError(f"{path} makes an Engine of an Executable that was compiled before: a prediction needs its graph")


def _script_line(path: Path) -> str:
    """The innermost line of the user's on the way to here."""
    frames = [frame for frame in traceback.extract_stack() if not is_ours(frame.filename) and not frame.filename.startswith("<")]
    own = [frame for frame in frames if Path(frame.filename) == path]
    last = (own or frames)[-1]
    return f"{last.filename}:{last.lineno}"


@contextmanager
def _as_main(case: ScriptCase) -> Iterator[None]:
    """Arguments and search path are those of a script that Python runs, and so are modules beside it: no script before had them."""
    argv, search, modules = sys.argv[:], sys.path[:], {*sys.modules}
    sys.argv = [str(case.path), *case.arguments]
    sys.path[:0] = [str(case.path.resolve().parent), POPTORCH]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
        for name in {*sys.modules} - modules:
            if _stands_below(sys.modules[name], case.path.resolve().parent):
                del sys.modules[name]


@contextmanager
def _settings_kept() -> Iterator[None]:
    """What a script sets for its process is set for no other: directory, environment, and the defaults of PyTorch."""
    directory, environment = os.getcwd(), {**os.environ}
    try:
        yield
    finally:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)
            torch.set_grad_enabled(True)


def _stands_below(module: Any, directory: Path) -> bool:
    """Whether a module's file is in a directory, or in one below it, and of no installed package."""
    file = getattr(module, "__file__", None)
    places = [file] if file else [*getattr(module, "__path__", [])]  # packages without an __init__.py have places alone
    return any(
        Path(place).resolve().is_relative_to(directory) and not is_ours(place) and not resources.is_installed(place)
        for place in places
    )
