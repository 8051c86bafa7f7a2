"""Settings of all tests: laws draw the same examples every time, without time limits; no options from the outside."""

import os
import signal
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from law_examples import FEWEST, USUAL, draw_no_constants_of_the_code

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("project", **COMMON, max_examples=USUAL, derandomize=True, database=None)
settings.register_profile("few", settings.get_profile("project"), max_examples=FEWEST)
settings.register_profile("thorough", **COMMON, max_examples=10_000, derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "project"))
if settings().derandomize:
    draw_no_constants_of_the_code()

os.environ.pop("POPLAR_ENGINE_OPTIONS", None)

pytest_plugins = ["pytester"]


MEASURED = 1  # set of parameters of a test


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Coverage is that of the other tests: laws and further parameters would take as long again to go over the same lines."""
    parameters = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        parameters[test] += 1
        if parameters[test] > MEASURED or item.get_closest_marker("hypothesis"):
            item.add_marker("no_cover")


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
