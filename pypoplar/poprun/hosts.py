"""The hosts that instances run on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pypoplar.errors import InvalidOption
from pypoplar.files import check_regular

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
MOST = 10_000


def listed_hosts(text: str) -> list[str]:
    """The hosts of ``a,b`` or ``h[0-2,4]``; `InvalidOption` for what is none."""
    parts = PART.findall(text)
    if ",".join(parts) != text or not parts:
        raise InvalidOption(f"--host is a list of hosts, a,b or h[0-2,4], got {text!r}")
    return _distinct([host for part in parts for host in _expanded(part)], "--host")


def _expanded(part: str) -> Iterator[str]:
    match = re.fullmatch(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)", part)
    if match is None:
        yield _checked(part)
        return
    for numbers in match[2].split(","):
        bounds = re.fullmatch(r"(\d+)(?:-(\d+))?", numbers)
        if bounds is None:
            raise InvalidOption(f"--host: {numbers!r} in {part!r} is no number and no range: write h[0-2,4]")
        first, last = int(bounds[1]), int(bounds[2] or bounds[1])
        if not first <= last < first + MOST:
            raise InvalidOption(f"--host: the range {numbers} in {part!r} goes down, or is too long")
        for number in range(first, last + 1):
            yield _checked(f"{match[1]}{number:0{len(bounds[1])}}{match[3]}")


def file_hosts(path: Path) -> list[str]:
    """The hosts of a file: the first word of each line, but for comments."""
    try:
        check_regular(path)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidOption(f"--hostfile: {path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    hosts = [words[0] for line in lines if (words := line.partition("#")[0].split())]
    if not hosts:
        raise InvalidOption(f"--hostfile: {path} has no hosts: write one in each line")
    return _distinct([_checked(host) for host in hosts], f"--hostfile: {path}")


def _checked(host: str) -> str:
    if not NAME.fullmatch(host):
        raise InvalidOption(f"{host!r} is no name of a host")
    return host


def _distinct(hosts: list[str], what: str) -> list[str]:
    twice = next((host for number, host in enumerate(hosts) if host in hosts[:number]), None)
    if twice is not None:
        raise InvalidOption(f"{what}: the host {twice!r} is there twice")
    return hosts
