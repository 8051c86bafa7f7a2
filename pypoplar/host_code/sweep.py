"""Sweeps: functions that go over arrays once, as the plain Python that they are, or as machine code that numba makes of them.

A sweep is given all its arrays: what it reads, and what it fills. It returns a count. It allocates nothing, raises nothing, and
calls nothing but sweeps, so that its machine code refers to nothing of the process that made it, and is kept for the next ones:
there numba is not even imported.

Machine code is for long lists. Where there are few rows, or none that were long in this process, callers do without, by NumPy; so
they do where there is no numba. What a sweep does is said by its text, and tests compare the three.
"""

from __future__ import annotations

import ctypes
import functools
import types
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pypoplar.extras import NUMBA_COMMAND
from pypoplar.host_code import cache
from pypoplar.host_code.once import once, one_at_a_time
from pypoplar.progress import Announcement, asked

FEWEST_ROWS = 256  # below it NumPy takes no longer
LOOKED_FOR = 1 << 16  # rows in this process, from which on code that is kept is used: loading it takes as long as they do
COMPILED = 1 << 20  # rows in this process, from which on it is made where none is kept
LOADING_BYTES, COMPILING_BYTES = 256 << 20, 1 << 30  # of address space at most: LLVM ends the process where it gets none
OLDEST = (0, 62)  # of numba: the first that writes LLVM's text as later ones do
COMPILING = Announcement("compiling passes over arrays, once")

ELEMENTS: dict[str, Any] = {"Int64s": np.dtype(np.int64), "Bools": np.dtype(np.bool_)}
"""The arrays that sweeps have, by the names in their signatures, as text; what is no array is an ``int``."""
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "boundscheck": False,
    "debug": False,
}  # fmt: skip
_ARRAY, _WORD = ("ptr", "ptr", "i64", "i64", "ptr", "i64", "i64"), ("i64",)  # what numba passes for each


@frozen(eq=False)
class SweepCode:
    """A sweep's machine code in this process, called as the sweep is; it lets go of the interpreter's lock while it runs."""

    sweep: Sweep
    _function: Any
    _loaded: Any  # keeps the instructions alive

    def __call__(self, *arguments: Any) -> int:
        """The sweep's count. Arrays that are filled lie in one piece; what is read is made so."""
        words, kept = [], []
        for kind, argument in zip(self.sweep.kinds, arguments, strict=True):
            if kind == "int":
                words.append(argument)
                continue
            array = np.ascontiguousarray(argument, ELEMENTS[kind])
            kept.append(array)
            words += (array.ctypes.data, len(array))
        return int(self._function((ctypes.c_int64 * len(words))(*words)))


@define(eq=False)
class Sweep:
    """A function that is a sweep; called as the plain Python that it is."""

    function: Callable[..., int]
    kinds: tuple[str, ...] = field(init=False)
    _code: SweepCode | None = field(init=False, default=None)
    _looked: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.kinds = tuple(kind for name, kind in self.function.__annotations__.items() if name != "return")
        assert {*self.kinds} <= {*ELEMENTS, "int"}, self.function

    def __call__(self, *arguments: Any) -> int:
        """The sweep itself."""
        return self.function(*arguments)

    @property
    def name(self) -> str:
        """What the sweep is called."""
        return self.function.__name__

    def code(self, rows: int) -> SweepCode | None:
        """The machine code for lists of so many rows together, or None where it is better done without, or cannot be made."""
        if rows < FEWEST_ROWS:
            return None
        return self._code or self._sought(rows)

    def _sought(self, rows: int) -> SweepCode | None:
        with one_at_a_time():
            _asked.rows += rows
            if self._code is None and _asked.rows >= LOOKED_FOR:
                self._code = self._found(_asked.rows >= COMPILED)
            return self._code

    def _found(self, compiles: bool) -> SweepCode | None:
        if not _has_room(COMPILING_BYTES if compiles else LOADING_BYTES):
            return None
        numba = numba_version()
        if numba is None:
            if compiles:
                _tell_without("there is no numba here, or one that is too old")
            return None
        from pypoplar.host_code import machine  # late: small programs make no machine code of this kind

        key = f"sweep {self.name} {_identity(self)} numba {numba} {machine.host().identity}"
        code = None if self._looked else cache.load(key)
        self._looked = True
        if code is None:
            if not compiles:
                return None
            problem = _import_problem()
            if problem:
                _tell_without(f"numba {numba} cannot be imported here ({problem})")
                return None
            with COMPILING.during(asked()):
                code = object_code(self)
            cache.store(key, code)
        return _callable(self, machine.load(code))


@define
class _Asked:
    rows: int = 0


_asked = _Asked()


def sweep(function: Callable[..., int]) -> Sweep:
    """Makes a sweep of a function."""
    return Sweep(function)


@once
def numba_version() -> str | None:
    """The version of the numba that is installed, or None if there is none, or one that is too old."""
    try:
        found = version("numba")
    except PackageNotFoundError:
        return None
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    return found if numbers >= OLDEST else None


def _has_room(bytes: int) -> bool:
    """Whether so much memory can be had, which is not touched."""
    try:
        np.empty(bytes, np.uint8)
    except MemoryError:
        return False
    return True


@once
def _import_problem() -> str:
    """Why the numba that is installed cannot be imported, as one that is older than NumPy cannot; empty if it can."""
    try:
        import numba  # noqa: F401 (late: where code is kept it is not needed)
    except ImportError as problem:
        return str(problem)
    return ""


@once
def _tell_without(why: str) -> None:
    warnings.warn(
        f"{why}: large graphs are built by NumPy alone, which takes longer; {NUMBA_COMMAND}",
        RuntimeWarning,
        stacklevel=2,
    )


@once
def _identity(sweep: Sweep) -> str:
    """The sources that decide what the code is: of the sweep, of those that it calls, and of what makes it."""
    return cache.fingerprint(*sorted(_modules(sweep)), "pypoplar.host_code.sweep", "pypoplar.host_code.machine")


def _modules(sweep: Sweep) -> set[str]:
    """The modules of a sweep and of those that it calls, which may be others'."""
    function = sweep.function
    assert isinstance(function, types.FunctionType)
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    return {function.__module__}.union(*(_modules(one) for one in called if isinstance(one, Sweep)))


def _symbol(sweep: Sweep) -> str:
    return f"pypoplar_sweep_{sweep.name}"


def _callable(sweep: Sweep, loaded: Any) -> SweepCode:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))(loaded.address(_symbol(sweep)))
    return SweepCode(sweep, function, loaded)


def compiled(sweep: Sweep) -> SweepCode:
    """The machine code, made anew and not kept."""
    from pypoplar.host_code import machine

    return _callable(sweep, machine.load(object_code(sweep)))


def object_code(sweep: Sweep) -> bytes:
    """What numba makes of a sweep, with a function before it that is given addresses and lengths as words in memory."""
    from pypoplar.host_code import machine

    text, inner = _numba_text(sweep)
    assert ".const.picklebuf" not in text, f"the sweep {sweep.name} raises"  # what numba keeps of an exception
    module = machine.optimise(f"{text}\n{_entry_text(sweep, inner)}")
    parameters = [str(argument.type) for argument in module.get_function(inner).arguments]
    assert parameters == ["ptr", "ptr", *_passed(sweep)], f"numba passes arguments in another way: {parameters}"
    unknown = [function.name for function in module.functions if function.is_declaration and not function.name.startswith("llvm.")]
    assert not unknown, f"the sweep {sweep.name} calls {unknown}"
    return machine.emit(module)


def _numba_text(sweep: Sweep) -> tuple[str, str]:
    """LLVM's text of a sweep, and the name of its function."""
    import numba

    signature = [numba.int64 if kind == "int" else numba.from_dtype(ELEMENTS[kind])[::1] for kind in sweep.kinds]
    dispatcher = _dispatcher(sweep)
    dispatcher.compile(numba.int64(*signature))
    result = dispatcher.overloads[tuple(signature)]  # there are others where sweeps call it with constants
    return result.library.get_llvm_str(), result.fndesc.llvm_func_name


@functools.cache
def _dispatcher(sweep: Sweep) -> Any:
    """The sweep as numba knows functions, and so those that it calls; each is compiled once."""
    from numba.core.registry import CPUDispatcher

    function = sweep.function
    assert isinstance(function, types.FunctionType)
    names = {**function.__globals__}
    names |= {name: _dispatcher(called) for name in function.__code__.co_names if isinstance(called := names.get(name), Sweep)}
    plain = types.FunctionType(function.__code__, names, function.__name__)
    return CPUDispatcher(py_func=plain, locals={}, targetoptions={"nopython": True, **_OPTIONS})


def _passed(sweep: Sweep) -> list[str]:
    """The types of what numba passes for a sweep's arguments."""
    return [form for kind in sweep.kinds for form in (_WORD if kind == "int" else _ARRAY)]


def _entry_text(sweep: Sweep, inner: str) -> str:
    """A function that takes the words from memory, and calls what numba made: result and exception by reference, then arguments."""
    lines, given, word = [], ["ptr %result", "ptr %exception"], 0

    def loaded(form: str) -> str:
        nonlocal word
        lines.append(f"%place{word} = getelementptr i64, ptr %words, i64 {word}")
        lines.append(f"%word{word} = load {form}, ptr %place{word}, align 8")
        word += 1
        return f"%word{word - 1}"

    for kind in sweep.kinds:
        if kind == "int":
            given.append(f"i64 {loaded('i64')}")
        else:
            data, length = loaded("ptr"), loaded("i64")
            size = ELEMENTS[kind].itemsize
            given += ("ptr null", "ptr null", f"i64 {length}", f"i64 {size}", f"ptr {data}", f"i64 {length}", f"i64 {size}")
    body = "\n  ".join(lines)
    return f"""
define i64 @{_symbol(sweep)}(ptr %words) {{
  %result = alloca i64
  %exception = alloca ptr
  {body}
  %status = call i32 @{inner}({", ".join(given)})
  %count = load i64, ptr %result
  ret i64 %count
}}
"""
