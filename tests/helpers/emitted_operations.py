"""The machine code of device operations, called from Python: ``FUNCTIONS["add_i32"](2**31 - 1, 1) == -(2**31)``."""

import ctypes
from typing import Any

from llvmlite import ir

from pypoplar.codelet.llvm.arithmetic import BOOL, REGISTER_FORMS, emit, emit_operand_fault
from pypoplar.codelet.llvm.symbols import register_library
from pypoplar.codelet.operations.table import OPERATIONS
from pypoplar.host_code import machine

SIGNATURES = {name: (operation.arguments, operation.result) for name, operation in OPERATIONS.items()}
FAULTS = {name: operation.fault for name, operation in OPERATIONS.items() if operation.fault is not None}
C_TYPES: dict[str, Any] = {
    "f32": ctypes.c_float, "f16": ctypes.c_float, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64, "bool": ctypes.c_bool,
}  # fmt: skip


def module_of(name: str, *, at_random: bool = False) -> str:
    """LLVM's text of a module with one function: the operation, called by its name from C.

    With `at_random` its last argument is the bits by which a half is rounded.
    """
    operation = OPERATIONS[name]
    module = ir.Module(name)
    forms = [ir.IntType(8) if kind == "bool" else REGISTER_FORMS[kind] for kind in (*operation.arguments, operation.result)]
    bits = [ir.IntType(64)] if at_random else []
    function = ir.Function(module, ir.FunctionType(forms[-1], forms[:-1] + bits), name)
    builder = ir.IRBuilder(function.append_basic_block())
    given = zip(function.args, operation.arguments, strict=False)
    values = [builder.trunc(value, BOOL) if kind == "bool" else value for value, kind in given]
    result = emit(builder, name, values, function.args[-1] if at_random else None)
    builder.ret(builder.zext(result, ir.IntType(8)) if operation.result == "bool" else result)
    return str(module)


def fault_module_of(name: str) -> str:
    """LLVM's text of a module with one function: whether the operation's last argument makes it an error."""
    form = REGISTER_FORMS[OPERATIONS[name].arguments[-1]]
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(ir.IntType(8), [form]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.zext(emit_operand_fault(builder, name, function.args[0]), ir.IntType(8)))
    return str(module)


def _compiled(name: str, text: str, result: str, *arguments: str) -> Any:
    register_library()
    code = machine.load(machine.compile_text(text))
    function: Any = ctypes.PYFUNCTYPE(C_TYPES[result], *(C_TYPES[kind] for kind in arguments))(code.address(name))
    function.code = code  # keeps the instructions alive
    return function


class Functions(dict[str, Any]):
    """The operations as functions of plain Python numbers, each compiled when it is first asked for."""

    def __missing__(self, name: str) -> Any:
        operation = OPERATIONS[name]
        self[name] = _compiled(name, module_of(name), operation.result, *operation.arguments)
        return self[name]


FUNCTIONS = Functions()


def random_function(name: str) -> Any:
    """An operation that rounds to a half at random, by 64 bits that are its last argument."""
    operation = OPERATIONS[name]
    return _compiled(name, module_of(name, at_random=True), operation.result, *operation.arguments, "u64")


def fault_function(name: str) -> Any:
    """Whether the last argument of an operation makes it an error, as machine code says."""
    return _compiled(name, fault_module_of(name), "bool", OPERATIONS[name].arguments[-1])
