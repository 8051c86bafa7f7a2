"""The backend for the host's processor, by LLVM."""

from __future__ import annotations

from pypoplar.codelet.backend.contract import Backend, NativeCodelet
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import PricedCodelet
from pypoplar.codelet.llvm.symbols import ENTRY, register_library
from pypoplar.host_code import machine


def _object_code(codelet: PricedCodelet, checks: Checks) -> bytes:
    from pypoplar.codelet.llvm.codelet_code import assembly_text  # late: code that is kept is not written again

    return machine.compile_text(assembly_text(codelet, checks))


def _load(code: bytes) -> NativeCodelet:
    register_library()
    loaded = machine.load(code)
    return NativeCodelet(loaded.address(ENTRY), loaded)


BACKEND = Backend(
    name="LLVM for the host",
    sources=("pypoplar.codelet.llvm", "pypoplar.host_code.machine"),
    identity=lambda: machine.host().identity,
    object_code=_object_code,
    load=_load,
)
