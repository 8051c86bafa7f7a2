"""The exceptions of pypoplar: Poplar's names in CapWords, each also the builtin that a Python user would catch.

`TABLE` lists them all with what they say; the documentation's table is made from it.
"""

from __future__ import annotations


class PoplarError(Exception):
    """The base of all errors that pypoplar raises on purpose."""


class GraphConnectionError(PoplarError, ValueError):
    """A vertex field without an edge, with two, of the wrong type or rank, or without a value."""


class MemoryElemConstraintsError(GraphConnectionError):
    """Fields that a codelet demands to be apart are connected to the same elements, and no copy on the tile can part them."""


class GraphCycleError(PoplarError, ValueError):
    """A race: vertices of one compute set, or workers of one MultiVertex, touch the same elements and at least one writes."""


class AtomicStoreError(GraphCycleError):
    """Two workers of a tile write into one 32-bit word of its memory."""


class GraphMemoryAllocationError(PoplarError, MemoryError):
    """A tile's memory does not hold what is placed on it; the attribute `report` has the whole picture.

    Attributes
    ----------
    report:
        What `Engine.getReport` would give, a `pva.Report`: memory by tile and by variable.
    executable:
        What the program would be with more memory, an `Executable`; None if that is refused too.
    picture:
        What is known without it, for pypoplar itself.
    """

    report: object | None = None
    executable: object | None = None
    picture: tuple[object, ...] = ()  # see pypoplar.compiler.memory.tile_memory


class PoplarMemoryError(PoplarError, MemoryError):
    """The memory of the machine that builds a graph does not suffice; the message has the largest tables and modules.

    The graph is as it was before the call: free memory, or take a larger machine, and call again.
    """


class InvalidTileMapping(PoplarError, ValueError):
    """An element or a vertex without a tile, or a tile that the target does not have."""


class InvalidOption(PoplarError, ValueError):
    """An unknown or ill-formed option, or a value that it cannot have; a figure of a machine out of its range."""


class UnknownField(PoplarError, KeyError):
    """A codelet has no field of that name; the message says the nearest."""

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0]) if self.args else ""


class UnknownVertexType(PoplarError, KeyError):
    """No codelet of that name has been added to the graph."""

    __str__ = UnknownField.__str__


class UnknownHandle(PoplarError, KeyError):
    """No stream, host handle, remote buffer or program of that name."""

    __str__ = UnknownField.__str__


class PoplarIndexError(PoplarError, IndexError):
    """An index or slice beyond the end of a tensor."""


class PoplarTypeError(PoplarError, TypeError):
    """A value or tensor of the wrong type, or a tensor of another graph."""


class PoplarAttributeError(PoplarError, AttributeError):
    """A tensor's attribute that it does not have, such as one of NumPy's arrays."""


class TypeNotSupportedError(PoplarTypeError):
    """An element type that the device does not have."""


class TensorShapeError(PoplarError, ValueError):
    """Shapes or element counts that do not fit each other."""


class TensorWriteError(PoplarError, ValueError):
    """A write to a constant, or to a view that holds an element twice."""


class TensorIOStateError(PoplarError, ValueError):
    """A host handle or stream name used twice, or host data of the wrong size or type."""


class CodeletError(PoplarError, SyntaxError):
    """A codelet that cannot be translated; the message shows the user's line with a caret.

    As a `SyntaxError` it has `filename`, `lineno`, `offset` and `text`, where they are known.
    """

    def __str__(self) -> str:  # SyntaxError would leave out the line
        if self.filename is None or self.lineno is None:
            return str(self.msg)
        lines = [f"{self.filename}:{self.lineno}: {self.msg}"]
        if self.text and self.offset:
            shown = self.text.rstrip()
            end = self.end_offset if self.end_lineno == self.lineno and self.end_offset else len(shown) + 1
            margin = "".join(character if character == "\t" else " " for character in shown[: self.offset - 1])
            lines += ["    " + shown, "    " + margin + "^" * max(1, end - self.offset)]
        return "\n".join(lines)


class CodeletCompileError(CodeletError):
    """A file of codelets in C++ that does not compile: all that the compiler says of it, as ``FILE:LINE:COLUMN: text``."""


class ControlProgramError(PoplarError, ValueError):
    """A program that cannot be built, such as a recursive call."""


class StreamConnectionError(PoplarError, ValueError):
    """A stream that is not connected, or connected to memory that does not fit."""


class StreamMemoryAllocationError(PoplarError, MemoryError):
    """A stream or remote transfer over its size limit, or remote buffers over the memory of their machine."""


class FileLoadError(PoplarError, OSError):
    """A file that is not there, damaged, or not one of ours."""


class MissingFeature(PoplarError, NotImplementedError):
    """Part of Poplar that pypoplar does not have; docs/not-there-yet.md lists them."""


class MissingMember(MissingFeature, PoplarAttributeError):
    """A name that PopLibs has in this module, and pypoplar does not have yet."""


class PoplarRuntimeError(PoplarError, RuntimeError):
    """An error while a program runs, such as an `ApplicationRuntimeError`."""


class ApplicationRuntimeError(PoplarRuntimeError):
    """A program that aborted, or was misused while running."""


class CodeletRuntimeError(ApplicationRuntimeError):
    """A vertex that failed: index, division by zero, check, cycle limit, shift, floating point."""


class CodeletIndexError(CodeletRuntimeError, IndexError):
    """A vertex that indexed beyond its field, or before its begin."""


class CodeletArithmeticError(CodeletRuntimeError, ArithmeticError):
    """A vertex that divided an integer by zero, shifted outside the width, or met a floating-point exception."""


class CycleLimitError(CodeletRuntimeError, TimeoutError):
    """A vertex that ran longer than the engine option `pypoplar.cycle_limit` allows."""


class UninitialisedReadError(CodeletRuntimeError):
    """A vertex that read memory nothing had written (`pypoplar.uninitialised = "error"`)."""


TABLE: tuple[type[PoplarError], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, type) and issubclass(value, PoplarError)
)
