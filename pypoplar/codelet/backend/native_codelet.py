"""Codelets as native code: made by a backend, or found in the cache."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from pypoplar.codelet.backend.contract import Backend, NativeCodelet
from pypoplar.codelet.cost.pricing import Pricing
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import Apply, PricedCodelet, TypedCodelet
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.host_code import cache
from pypoplar.host_code.once import one_at_a_time

# The packages and modules that decide what code is, whatever backend makes it; the backend's own come to them.
SOURCES = (
    *("pypoplar.codelet.ir", "pypoplar.codelet.cost", "pypoplar.codelet.operations"),
    *("pypoplar.interface", "pypoplar.types", "pypoplar.ipu"),
)
_compiled: dict[str, NativeCodelet] = {}


def host_backend() -> Backend:
    """The backend for this process's processor. It is imported here, when code is asked for, and not before."""
    from pypoplar.codelet.llvm.host_backend import BACKEND

    return BACKEND


def compile_unpriced(codelet: TypedCodelet, pricing: Pricing, checks: Checks) -> NativeCodelet:
    """The native code of a codelet that is priced if its code is not in the cache."""
    return native_code(codelet, checks, pricing.key, lambda: pricing(codelet))


def native_code(codelet: TypedCodelet, checks: Checks, besides: object, make: Callable[[], PricedCodelet]) -> NativeCodelet:
    """The native code of a codelet, compiled or found in the cache; each combination of checks is a version of its own.

    `besides` is what the code depends on beyond the codelet. Codelets that differ in names alone share their code. What has an
    operation that was registered from outside is not kept on disk: nothing there would tell its recipe from another.
    """
    backend = host_backend()
    registrations = _registrations(codelet)
    key = _key(codelet, checks, besides, registrations, backend)
    with one_at_a_time():
        if key not in _compiled:
            code = None if registrations else cache.load(key)
            if code is None:
                code = backend.object_code(make(), checks)
                if not registrations:
                    cache.store(key, code)
            _compiled[key] = backend.load(code)
        return _compiled[key]


def _registrations(codelet: TypedCodelet) -> list[int]:
    """Those of the operations from outside that a codelet has."""
    used = {typed_operation(statement.operation).number for statement in walk(codelet.body) if isinstance(statement, Apply)}
    return sorted(used - {0})


def _key(codelet: TypedCodelet, checks: Checks, besides: object, registrations: list[int], backend: Backend) -> str:
    """All that the code depends on, as text: equality of literals would not do, for 0.0 == -0.0 and 1 == True."""
    essence = evolve(codelet, name="", locations=(), texts=(), helpers=())
    sources = cache.fingerprint(*SOURCES, *backend.sources)
    parts = (essence, besides, checks, registrations)
    return "\n".join((*map(repr, parts), backend.name, backend.identity(), sources))
