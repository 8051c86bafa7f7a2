"""Settings of all tests: which examples laws draw, without time limits; no options from the outside."""

import gc
import os
import signal

import pytest
from law_examples import SEED, commit_seed, load_profile

PROFILE = load_profile()

os.environ.pop("POPLAR_ENGINE_OPTIONS", None)

pytest_plugins = ["pytester", "changed_option", "collecting_order", "measured_items", "slow_items"]


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config):
    """Under the profile `ci` every commit draws examples of its own."""
    if PROFILE == "ci" and config.getoption("hypothesis_seed", "no plugin") is None:
        config.option.hypothesis_seed = commit_seed(config.rootpath)


def pytest_terminal_summary(terminalreporter, config):
    """Say how a run that draws from a seed is run again, whether it was quiet or not."""
    if PROFILE == "ci":
        terminalreporter.write_line(f"Laws were drawn with HYPOTHESIS_PROFILE=ci {SEED}={config.option.hypothesis_seed}")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage meanwhile, and never among what was collected: these are half a million objects that all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """Names are the same in every process, or workers refuse to begin."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: a test's name has an address, which other processes do not share: give ids")


@pytest.fixture(autouse=True, scope="session")
def options_of_this_run_only():
    """What the environment gives to this run, whose workers read it too, is not for the runs that tests start."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("PYTEST_ADDOPTS", raising=False)
        yield


@pytest.fixture
def stopwatch():
    """Ends a test that waits for ever, such as for somebody to write into a named pipe."""

    def stop(number, frame):
        raise TimeoutError("the test waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)  # a slow machine is not an error
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
