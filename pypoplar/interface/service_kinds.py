"""What a program asks Python for, and what it tells it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ServiceKind(StrEnum):
    """Kinds of services. A service is a mapping with its ``"kind"`` and the details that `DETAILS` names."""

    ABORT = "abort"
    AGREE = "agree"
    CALLBACK = "callback"
    ERROR = "error"
    EXCHANGE = "exchange"
    HOST_FUNCTION = "host_function"
    JUDGE = "judge"
    PRINT = "print"
    PRINTS = "prints"
    REMOTE_READ = "remote_read"
    REMOTE_WRITE = "remote_write"
    SEED = "seed"
    UNDEFINED = "undefined"


DETAILS: Mapping[ServiceKind, frozenset[str]] = {
    ServiceKind.ABORT: frozenset({"message", "location"}),
    ServiceKind.AGREE: frozenset({"stream", "name", "location"}),  # replicas must have one value
    ServiceKind.CALLBACK: frozenset({"stream"}),
    ServiceKind.ERROR: frozenset({"message", "location", "stream", "shape"}),
    ServiceKind.EXCHANGE: frozenset({"sent", "received", "receivers", "step", "name", "location"}),  # between replicas
    ServiceKind.HOST_FUNCTION: frozenset({"name", "inputs", "outputs"}),
    ServiceKind.JUDGE: frozenset({"compute", "name"}),
    ServiceKind.PRINT: frozenset({"title", "stream", "shape"}),
    ServiceKind.PRINTS: frozenset(),  # what vertices have printed so far is written
    ServiceKind.REMOTE_READ: frozenset({"buffer", "stream", "offsets"}),
    ServiceKind.REMOTE_WRITE: frozenset({"buffer", "stream", "offsets"}),
    ServiceKind.SEED: frozenset({"stream", "modifier"}),
    ServiceKind.UNDEFINED: frozenset({"stream"}),
}
"""What each kind is told; a name means the same in all of them."""


MEETINGS = frozenset({ServiceKind.AGREE, ServiceKind.EXCHANGE})
"""Services that replicas do together, once all have come to them."""


def service_of(kind: ServiceKind, **details: object) -> dict[str, object]:
    """A service; `ValueError` unless it is told what its kind has to be told."""
    wrong = sorted(details.keys() ^ DETAILS[kind])
    if wrong:
        raise ValueError(f"the service {kind}: {', '.join(wrong)} surplus or missing")
    return {"kind": str(kind), **details}
