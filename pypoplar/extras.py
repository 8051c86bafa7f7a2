"""How what only some parts of pypoplar need is installed: here and in docs/install.md a release says where from."""


def install_command(extra: str) -> str:
    """What installs an extra, for messages that something is missing."""
    return f"pip install -e '.[{extra}]' in a checkout of pypoplar"
