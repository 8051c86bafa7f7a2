"""The pytest plugin: the fixtures `ipu` and `mode`, and the option ``--pypoplar-mode``."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pypoplar.tracebacks import cut_all

if TYPE_CHECKING:
    from pypoplar.device import Device


class Mode(str):
    """An engine mode that comes from the fixture `mode`, not from a parametrization of the user's."""

    __slots__ = ()


MODES = (Mode("interpret"), Mode("native"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--pypoplar-mode`` to pytest."""
    parser.getgroup("pypoplar").addoption(
        "--pypoplar-mode",
        choices=["interpret", "native", "both"],
        default="both",
        help="engine modes for tests that use the fixture `mode` (default: both)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the mode that was not asked for."""
    chosen = config.getoption("--pypoplar-mode")
    if chosen == "both":
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        other = any(isinstance(parameter, Mode) and parameter != chosen for parameter in parameters.values())
        (left_out if other else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show errors of pypoplar at the line of the test: pytest would print the whole function that the test called."""
    if call.excinfo is not None:
        cut_all(call.excinfo.value)
        trace = call.excinfo.value.__traceback__
        if trace is not None:
            call.excinfo.traceback = type(call.excinfo.traceback)(trace)
    return (yield)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """The engine's mode, for ``Engine(graph, program, mode=mode)``: the test runs once in each."""
    return str(request.param)


@pytest.fixture
def ipu() -> Device:
    """A simulated IPU with 16 tiles."""
    from pypoplar.device import IPUModel

    return IPUModel("tiny").createDevice()
