"""The table of operators: what each node of a graph becomes, by domain, name and the opset from which on it holds.

An entry is a small function of a `NodeCall`, which has the node's attributes, and of its operands, tensors of PyTorch; it gives
one tensor or a tuple of them. It is called with the values of operands that are all known, or with tensors of the device "meta"
to learn shapes; and again while the model is captured.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

Entry = TypeVar("Entry", bound=Callable[..., Any])
ALL = -1  # operands
MANY = 2**31 - 1

DEFAULT_DOMAINS = ("", "ai.onnx")


@frozen(eq=False)
class Operator:
    """An entry: the function, how many of a node's operands it takes as tensors, and what a node without a schema may have."""

    domain: str
    name: str
    since: int
    entry: Callable[..., Any]
    tensors: int
    needed: tuple[str, ...] = ()  # attributes that a node has to have, in the order of PopART's arguments
    attributes: tuple[str, ...] | None = None  # and those that it may have; None: ONNX's schema says both
    operands: tuple[int, int] = (0, MANY)  # how many it takes, at least and at most


_TABLE: dict[tuple[str, str], list[Operator]] = {}


def operator(
    *names: str,
    since: int = 1,
    domain: str = "",
    needed: tuple[str, ...] = (),
    attributes: tuple[str, ...] | None = None,
    operands: tuple[int, int] | None = None,
) -> Callable[[Entry], Entry]:
    """Enter a function for operators of these names, from an opset of their domain on.

    Operators that ONNX has no schema for have `attributes`, after those that are `needed`; `operands` are how many they take, if
    their function does not say it.
    """

    def enter(entry: Entry) -> Entry:
        for name in names:
            versions = _TABLE.setdefault((domain, name), [])
            assert all(one.since != since for one in versions), f"{name} of opset {since} has two entries"
            taken = _operands(entry) if operands is None else operands
            versions.append(Operator(domain, name, since, entry, _tensors(entry), needed, attributes, taken))
            versions.sort(key=lambda one: one.since)
        return entry

    return enter


def _tensors(entry: Callable[..., Any]) -> int:
    parameters = list(inspect.signature(entry).parameters.values())[1:]
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return ALL
    return len([one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD])


def _operands(entry: Callable[..., Any]) -> tuple[int, int]:
    """The operands that an entry has to be given, and those that it takes."""
    parameters = list(inspect.signature(entry).parameters.values())[1:]
    plain = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    least = len([one for one in plain if one.default is one.empty])
    return least, MANY if len(plain) < len(parameters) else len(plain)


def plain_domain(domain: str) -> str:
    """The domain with one name for ONNX's own, which has two."""
    return "" if domain in DEFAULT_DOMAINS else domain


def find_operator(domain: str, name: str, opset: int) -> Operator | None:
    """The entry of an operator in an opset; None without one."""
    versions = _TABLE.get((plain_domain(domain), name), [])
    return next((one for one in reversed(versions) if one.since <= opset), None)


def all_operators() -> list[Operator]:
    """Every entry, by domain, name and opset."""
    return [one for key in sorted(_TABLE) for one in _TABLE[key]]
