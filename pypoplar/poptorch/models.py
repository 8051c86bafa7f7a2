"""What makes a module a model on the simulated IPU."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.executor.model_file import read_model, unpack
from pypoplar.poptorch.options import Options


def trainingModel(
    model: torch.nn.Module | PoplarExecutor, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
) -> PoplarExecutor:
    """A module that trains on the simulated IPU: each call is a step, or as many as the options say.

    The module's forward pass returns its loss, alone or beside other outputs: that of a loss function of PyTorch, or a value behind
    `identity_loss`. Its parameters are trained in place, so that the module has the new weights after each call. The module runs as
    it is: call its `train()` before.

    Parameters
    ----------
    model:
        A module, or a model that was made of one.
    options:
        How it is compiled and run. They cannot be changed from then on; their clones can. None: as they are at first.
    optimizer:
        One of `torch.optim` or `poptorch.optim` for the module's parameters; None: ``torch.optim.SGD(model.parameters(),
        lr=0.01)``.

    Returns
    -------
    PoplarExecutor
        Not compiled yet: its first call is.

    Raises
    ------
    PoplarTypeError
        For a model, options or an optimiser of another kind.
    """
    module = model.model if isinstance(model, PoplarExecutor) else model
    chosen = torch.optim.SGD(module.parameters(), lr=0.01) if optimizer is None else optimizer
    return PoplarExecutor(module, options, chosen)


def inferenceModel(model: torch.nn.Module | PoplarExecutor, options: Options | None = None) -> PoplarExecutor:
    """A module whose calls run on the simulated IPU. Dropout drops nothing; all else is as the module says: `eval()` it before.

    Parameters
    ----------
    model:
        A module, or a model that was made of one.
    options:
        How it is compiled and run. They cannot be changed from then on; their clones can. None: as they are at first.

    Returns
    -------
    PoplarExecutor
        Not compiled yet: its first call is.

    Raises
    ------
    PoplarTypeError
        For a model or options of another kind.
    InvalidOption
        If the options accumulate gradients.
    """
    return PoplarExecutor(model.model if isinstance(model, PoplarExecutor) else model, options, None)


def load(
    filename: str | os.PathLike[str],
    edit_opts_fn: Callable[[Options], None] | None = None,
    *,
    run_code_of_file: bool = False,
) -> PoplarExecutor:
    """The model that `PoplarExecutor.save` wrote with its module, with its executable.

    A module is pickled, and restoring it runs what its file names: whoever wrote the file can do with it whatever you can. So
    only weights are read, and what you have told PyTorch to be safe with `torch.serialization.add_safe_globals`, unless you ask
    for more.
    `PoplarExecutor.loadExecutable` of a model that your program makes never runs what a file says.

    Parameters
    ----------
    filename:
        The file.
    edit_opts_fn:
        Is given the model's options, and may change them first.
    run_code_of_file:
        True to run the code that the file names: for a file that you wrote, or whose author you trust as your own programs.

    Returns
    -------
    PoplarExecutor
        Compiled: its calls take arguments like those before.

    Raises
    ------
    FileLoadError
        If there is no such file, if it is no file of a model, if it has an executable alone, or a module whose code was not to be
        run.
    """
    if not isinstance(run_code_of_file, bool):
        raise PoplarTypeError(f"load: run_code_of_file is True or False, got {run_code_of_file!r}")
    file = read_model(filename)
    if file.exported is None:
        raise FileLoadError(f"{os.fspath(filename)} has an executable alone: make the model, and call its loadExecutable")
    exported = unpack(filename, file.exported, run_code_of_file=run_code_of_file)
    options = exported.options.clone()
    options._unfreeze()
    if edit_opts_fn is not None:
        edit_opts_fn(options)
    executor = PoplarExecutor(exported.module, options, exported.optimizer)
    executor._take(file)
    return executor
