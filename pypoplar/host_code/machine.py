"""The host's processor as LLVM sees it: from LLVM's text to object code, and from object code to addresses.

Nothing here knows codelets. Object code made by `compile_text` holds no address of this process, so it can be kept on disk
and given to `load` in another one, on the same kind of processor (`Host.identity`).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from attrs import frozen

from pypoplar.host_code.once import once

SYMBOL_PREFIX = "pypoplar_"


@frozen
class Host:
    """The processor that code is made for."""

    triple: str
    processor: str
    features: str

    @property
    def identity(self) -> str:
        """Tells apart processors, and makers of code, whose object code cannot be exchanged."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{self.triple} {self.processor} {self.features} llvmlite {llvmlite.__version__} llvm {version}"

    @property
    def converts_halves(self) -> bool:
        """Whether the processor turns float32 into half and back by itself."""
        return "+f16c" in self.features.split(",") or self.triple.startswith(("aarch64", "arm64"))


@once
def host() -> Host:
    """The processor of this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know them on every system
        features = ""
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def _target_machine() -> Any:
    processor = host()
    # The JIT works with static relocation on x86.
    reloc = "static" if processor.triple.startswith(("x86", "i386", "i686")) else "default"
    return llvm.Target.from_triple(processor.triple).create_target_machine(
        cpu=processor.processor, features=processor.features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
    )


YIELD_SYMBOL = SYMBOL_PREFIX + "yield_processor"


@once
def register_yield() -> None:
    """Tell LLVM where the operating system's "let others run" is; cached code finds it by this name in every process."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    llvm.add_symbol(YIELD_SYMBOL, address)


def optimise(text: str) -> Any:
    """The module that `text` (LLVM's assembly) describes, checked and optimised."""
    machine = _target_machine()
    module = llvm.parse_assembly(text)
    # Without these LLVM takes the machine for a big-endian one, and joins neighbouring values the wrong way round.
    module.triple = host().triple
    module.data_layout = str(machine.target_data)
    module.verify()
    # Level 3 takes a quarter longer, to split loops at branches and unroll more: codelets' code was measured, and runs no faster.
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def compile_text(text: str) -> bytes:
    """Object code for this host."""
    return emit(optimise(text))


def emit(module: Any) -> bytes:
    """Object code of a module that is optimised."""
    code: bytes = _target_machine().emit_object(module)
    return code


@frozen(eq=False)
class LoadedCode:
    """Object code in this process; its addresses hold as long as this object lives."""

    _engine: Any

    def address(self, name: str) -> int:
        """Where a function of the code begins."""
        address = int(self._engine.get_function_address(name))
        if address == 0:
            raise LookupError(f"the object code has no function {name!r}")
        return address


# LLVM may count the rounds of a loop in 128 bits. The division of such numbers is a function of the compiler's own library, which a
# process need not have; an unresolved call would jump to nowhere. This is long division, bit by bit: it runs once before a loop.
_WIDE_DIVISION = """
define {i128, i128} @pypoplar_wide_division(i128 %a, i128 %b) {
start:
  br label %bit
bit:
  %i = phi i128 [127, %start], [%below, %bit]
  %r = phi i128 [0, %start], [%rest, %bit]
  %q = phi i128 [0, %start], [%quotient, %bit]
  %shifted = shl i128 %r, 1
  %high = lshr i128 %r, 127
  %over = icmp ne i128 %high, 0
  %moved = lshr i128 %a, %i
  %next = and i128 %moved, 1
  %with = or i128 %shifted, %next
  %reaches = icmp uge i128 %with, %b
  %fits = or i1 %over, %reaches
  %less = sub i128 %with, %b
  %rest = select i1 %fits, i128 %less, i128 %with
  %one = shl i128 1, %i
  %more = or i128 %q, %one
  %quotient = select i1 %fits, i128 %more, i128 %q
  %below = sub i128 %i, 1
  %last = icmp eq i128 %i, 0
  br i1 %last, label %end, label %bit
end:
  %first = insertvalue {i128, i128} undef, i128 %quotient, 0
  %both = insertvalue {i128, i128} %first, i128 %rest, 1
  ret {i128, i128} %both
}
define i128 @__udivti3(i128 %a, i128 %b) {
  %both = call {i128, i128} @pypoplar_wide_division(i128 %a, i128 %b)
  %result = extractvalue {i128, i128} %both, 0
  ret i128 %result
}
define i128 @__umodti3(i128 %a, i128 %b) {
  %both = call {i128, i128} @pypoplar_wide_division(i128 %a, i128 %b)
  %result = extractvalue {i128, i128} %both, 1
  ret i128 %result
}
define i128 @__divti3(i128 %a, i128 %b) {
  %sa = ashr i128 %a, 127
  %sb = ashr i128 %b, 127
  %xa = xor i128 %a, %sa
  %xb = xor i128 %b, %sb
  %pa = sub i128 %xa, %sa
  %pb = sub i128 %xb, %sb
  %positive = call i128 @__udivti3(i128 %pa, i128 %pb)
  %sign = xor i128 %sa, %sb
  %flipped = xor i128 %positive, %sign
  %result = sub i128 %flipped, %sign
  ret i128 %result
}
define i128 @__modti3(i128 %a, i128 %b) {
  %sa = ashr i128 %a, 127
  %sb = ashr i128 %b, 127
  %xa = xor i128 %a, %sa
  %xb = xor i128 %b, %sb
  %pa = sub i128 %xa, %sa
  %pb = sub i128 %xb, %sb
  %positive = call i128 @__umodti3(i128 %pa, i128 %pb)
  %flipped = xor i128 %positive, %sa
  %result = sub i128 %flipped, %sa
  ret i128 %result
}
"""


@once
def _wide_division() -> Any:
    """The division of 128-bit numbers, known to LLVM by the names under which compilers call it."""
    module = llvm.parse_assembly(_WIDE_DIVISION)
    module.triple = host().triple
    engine = llvm.create_mcjit_compiler(module, _target_machine())
    engine.finalize_object()
    for name in ("__udivti3", "__umodti3", "__divti3", "__modti3"):
        llvm.add_symbol(name, engine.get_function_address(name))
    return engine


def load(code: bytes) -> LoadedCode:
    """Make object code callable. The caller vouches for the bytes: they become instructions of this process."""
    register_yield()
    _wide_division()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return LoadedCode(engine)
