"""How what only some parts of pypoplar need is installed: here and in docs/install.md a release says where from."""

NUMBA_COMMAND = "pip install 'numba>=0.62'"  # what installs the oldest numba that compiles sweeps


def install_command(extra: str) -> str:
    """What installs an extra, for messages that something is missing."""
    return f"pip install -e '.[{extra}]' in a checkout of pypoplar"
