"""A plugin of pytest by which the tests of graphcore/poptorch run on the simulated IPU, as the README beside it says.

It puts `pypoplar.poptorch` in the place of `poptorch`, gives the private names that the suite's `helpers.py` asks for, and leaves
out what needs hardware or the tracer of before PopTorch 3.0. The machine has 4 tiles, or as many as ``SUITE_TILES`` says.
"""

import enum
import logging
import os
import sys
import types

import pytest

from pypoplar.poptorch import poptorch_name
from pypoplar.poptorch.executor import building

poptorch_name.install()

import poptorch  # noqa: E402

building.TILES = int(os.environ.get("SUITE_TILES", "4"))
core = types.ModuleType("poptorch.poptorch_core")
core.Error = poptorch.Error
core.isCompilingWithDispatcher = lambda: False
core.TestErrorType = enum.Enum("TestErrorType", [])  # errors that only PopTorch's backend throws
sys.modules[core.__name__] = vars(sys.modules["pypoplar.poptorch"])["poptorch_core"] = core
poptorch._impl = types.SimpleNamespace(isDispatchTracing=lambda: False)


class ToStandardError(logging.Handler):
    """Writes what PopTorch's tests look for, though pytest takes messages itself."""

    def emit(self, record):
        sys.stderr.write(f"[poptorch] [{record.levelname}] {record.getMessage()}\n")


logging.getLogger("poptorch").addHandler(ToStandardError())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Leave out what nothing here can run."""

    def runs(item):
        traced = getattr(item, "callspec", None) is not None and item.callspec.params.get("trace_model")
        return not traced and not any(item.iter_markers("ipuHardwareRequired"))

    items[:] = [item for item in items if runs(item)]
