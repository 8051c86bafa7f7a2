"""An environment for processes whose coverage is not measured."""

import os


def unmeasured() -> dict[str, str]:
    """The environment of this process without what makes coverage start in others."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}
