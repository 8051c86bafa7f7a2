"""Without PyTorch there is nothing to test here. The environment sets no options, and what is told once is told once in a test."""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]

VARIABLES = (
    "POPTORCH_CACHE_DIR",
    "POPTORCH_DEFAULT_OPTIONS",
    "POPTORCH_IPU_MODEL",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
)


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch):
    from pypoplar.poptorch import user_log

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(user_log, "_said", set())
