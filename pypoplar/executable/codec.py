"""Turns an executable into arrays and a tree that JSON can hold, and back.

The fields of the classes in `PARTS` decide the form, by their declared types: a field that is added later is carried along. Arrays
of one path, such as ``steps.exchange_cycles``, are laid end to end; the tree says where each begins, and an array that several
parts share is kept once.

cattrs was tried in its place and is not used. All that makes this strict has to be given to it as hooks (kinds, surplus and missing
names, exact lengths, paths in messages, shared arrays): it is hardly shorter, and making the hooks takes longer than a small file.
"""

from __future__ import annotations

import functools
import math
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, overload

import attrs
import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray, Integers, StructuredArray
from pypoplar.codelet.codelet import Codelet
from pypoplar.errors import FileLoadError, PoplarError
from pypoplar.executable.archive import HeldArray, StoredArray, claim_unpacked, read_all
from pypoplar.executable.claims import claim
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.cost_facts import CostFacts, Decision
from pypoplar.executable.exchange_account import MESSAGE, Exchange, ExchangeShare, NamedExchange
from pypoplar.executable.executable import Executable
from pypoplar.executable.graph_facts import Counts, MadeAt, VertexNames
from pypoplar.executable.host_plans import HostTensor, RemotePlan, StreamPlan
from pypoplar.executable.memory_image import Image
from pypoplar.executable.memory_use import TileMemory
from pypoplar.executable.move_lists import Moves
from pypoplar.executable.narrow_arrays import holds, narrowed, widened
from pypoplar.executable.program_tree import ProgramTree
from pypoplar.executable.replication import LEFT_OUT, Replication
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.touched_edges import Touches
from pypoplar.executable.variable_lives import Lives
from pypoplar.options import EngineOptions
from pypoplar.target import Target

PARTS: tuple[type, ...] = (
    Executable,
    Computes,
    CostFacts,
    Counts,
    Decision,
    HostTensor,
    Image,
    Lives,
    MadeAt,
    Moves,
    NamedExchange,
    RemotePlan,
    Replication,
    StaticStep,
    StreamPlan,
    TileMemory,
    Touches,
    VertexNames,
    Exchange,
    ExchangeShare,
    ProgramTree,
)
OWN_FORM: tuple[type, ...] = (Codelet, EngineOptions, Target)
"""Classes with `to_json` and `from_json` of their own; `from_json` checks what it is given."""

RECORDS: dict[str, np.dtype[Any]] = {"exchanges.account.messages": MESSAGE, "exchanges.shares.messages": MESSAGE}
"""What arrays hold that are declared as a `StructuredArray`, by path."""


@functools.cache
def fields_of(part: type) -> dict[str, Any]:
    """The fields of a class of `PARTS` with their declared types."""
    hints = get_type_hints(part)
    return {declared.name: hints[declared.name] for declared in attrs.fields(part)}


@functools.cache
def left_out(part: type) -> frozenset[str]:
    """The fields of a class of `PARTS` that files leave out where they are None, as their metadata says."""
    return frozenset(declared.name for declared in attrs.fields(part) if declared.metadata.get(LEFT_OUT))


OF_ANY_WIDTH = (Integers, StructuredArray)  # records stay as the file has them: reports alone look at them
COMPACT, WIDE = np.dtype(np.int32), np.dtype(np.int64)  # of arrays that are declared as `Integers`: the first that holds them


@functools.cache
def dtype_of(kind: Any, path: str) -> np.dtype[Any]:
    """The dtype of an array that is declared as one of `pypoplar.arrays.dtypes`; the widest where there is a choice."""
    if kind == Integers:
        return WIDE
    return RECORDS[path] if kind == StructuredArray else np.dtype(get_args(get_args(kind)[1])[0])


class StoredForm(Enum):
    """How values of a declared type stand in a file."""

    OPTIONAL, ARRAY, TEXTS, PART, OWN, SEQUENCE, MAPPING, PLAIN = range(8)


@functools.cache
def stored_form(kind: Any) -> StoredForm:
    """The form of values of a declared type, which is asked for each of them."""
    if isinstance(kind, types.UnionType):
        return StoredForm.OPTIONAL
    if kind == tuple[str, ...]:
        return StoredForm.TEXTS
    if kind in PARTS or kind in OWN_FORM:
        return StoredForm.PART if kind in PARTS else StoredForm.OWN
    origin = get_origin(kind)
    if origin in (list, tuple, Sequence):
        return StoredForm.SEQUENCE
    return {np.ndarray: StoredForm.ARRAY, Mapping: StoredForm.MAPPING}.get(origin, StoredForm.PLAIN)


def path_to(path: str, name: str) -> str:
    """Where a field stands in the file, for messages: "program.steps"."""
    return f"{path}.{name}" if path else name


@define(eq=False)
class Packer:
    """Collects the arrays and texts of what `pack` has turned into a tree."""

    texts: list[tuple[str, ...]] = field(factory=list)
    _parts: dict[str, list[AnyArray]] = field(factory=dict)
    _sizes: dict[str, int] = field(factory=dict)
    _seen: dict[int, tuple[object, Any]] = field(factory=dict)  # by identity; holds the object, so that it keeps its identity

    def pack(self, value: Any, kind: Any, path: str = "") -> Any:
        """The tree of a value of the declared type `kind`."""
        match stored_form(kind):
            case StoredForm.OPTIONAL:
                return None if value is None else self.pack(value, present(kind), path)
            case StoredForm.ARRAY:
                compact = kind == Integers and value.dtype == COMPACT
                return self._once(value, lambda: self._array(value, COMPACT if compact else dtype_of(kind, path), path))
            case StoredForm.TEXTS:
                return self._once(value, lambda: self._text(value))
            case StoredForm.PART:
                stored = {name: of for name, of in fields_of(kind).items() if self._is_told(value, kind, name)}
                return {name: self.pack(getattr(value, name), of, path_to(path, name)) for name, of in stored.items()}
            case StoredForm.OWN:
                return value.to_json()
            case StoredForm.SEQUENCE:
                return [self.pack(entry, of, path) for entry, of in zip(value, element_types(kind, len(value)), strict=True)]
            case StoredForm.MAPPING:
                return {name: self.pack(entry, get_args(kind)[1], path) for name, entry in value.items()}
            case StoredForm.PLAIN:
                return plain(value) if kind is Any else kind(value)

    @staticmethod
    def _is_told(value: Any, kind: type, name: str) -> bool:
        return name not in left_out(kind) or getattr(value, name) is not None

    def _once(self, value: object, make: Any) -> Any:
        if id(value) not in self._seen:
            self._seen[id(value)] = value, make()
        return self._seen[id(value)][1]

    def _array(self, value: AnyArray, dtype: np.dtype[Any], path: str) -> list[Any]:
        begin = self._sizes.get(path, 0)
        self._parts.setdefault(path, []).append(np.asarray(value, dtype).ravel())
        self._sizes[path] = begin + value.size
        return [path, begin, *value.shape]

    def _text(self, value: tuple[str, ...]) -> int:
        self.texts.append(value)
        return len(self.texts) - 1

    def arrays(self) -> dict[str, AnyArray]:
        """The arrays by path, each of rank 1 and of the smallest whole numbers that hold it."""
        return {path: narrowed(parts[0] if len(parts) == 1 else np.concatenate(parts)) for path, parts in self._parts.items()}


def plain(value: Any) -> Any:
    """A value that JSON can hold as it is; `TypeError` for any other."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    raise TypeError(f"{value!r} cannot be part of a saved executable")


@functools.cache
def present(kind: types.UnionType) -> Any:
    """What ``X | None`` is if it is not None."""
    return next(choice for choice in get_args(kind) if choice is not type(None))


def element_types(kind: Any, length: int) -> tuple[Any, ...]:
    """The declared types of the elements of a list or tuple."""
    declared = get_args(kind)
    return declared if get_origin(kind) is tuple and declared[-1] is not Ellipsis else (declared[0],) * length


Part = TypeVar("Part")
LATER = ("exchanges",)  # paths of lists that reports alone ask for


class LaterList(Sequence[Part]):
    """A list of parts of a known length, which is made when something is asked of it."""

    def __init__(self, length: int, make: Callable[[], list[Part]]) -> None:
        self._length, self._lock = length, threading.Lock()
        self._make: Callable[[], list[Part]] | None = make
        self._parts: list[Part] = []

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Part: ...

    @overload
    def __getitem__(self, place: slice) -> list[Part]: ...

    def __getitem__(self, place: int | slice) -> Part | list[Part]:
        return self._made()[place]

    def __iter__(self) -> Iterator[Part]:
        return iter(self._made())

    def __repr__(self) -> str:
        return repr(self._made())

    def _made(self) -> list[Part]:
        with self._lock:
            if self._make is not None:
                self._parts, self._make = self._make(), None
        return self._parts


@define(eq=False)
class Unpacker:
    """Makes values of a tree, where everything has exactly the form that its declared type asks for; else `FileLoadError`.

    Arrays may be of narrower whole numbers; in their own types they take at most `limit` bytes.
    """

    arrays: dict[str, StoredArray | HeldArray | AnyArray]  # by path, as they are stored: those that the tree has not asked for
    texts: list[tuple[str, ...]]
    limit: int
    whole: dict[str, AnyArray] = field(factory=dict)  # the others, in their own types
    later: tuple[str, ...] = ()  # paths of lists that are made when something is asked of them
    unread: list[tuple[StoredArray | HeldArray, AnyArray]] = field(factory=list)  # those of them that have to be filled yet
    _size: int = 0  # in bytes, of these
    _made: dict[tuple[Any, ...], AnyArray] = field(factory=dict)  # what was shared is shared again

    def unpack(self, tree: Any, kind: Any, path: str = "", where: str = "") -> Any:
        """The value of the declared type `kind`. `where` names it in messages: the path with the positions in lists."""
        match stored_form(kind):
            case StoredForm.OPTIONAL:
                return None if tree is None else self.unpack(tree, present(kind), path, where)
            case StoredForm.ARRAY:
                return self._array(tree, kind, path, where)
            case StoredForm.TEXTS:
                listed = type(tree) is int and 0 <= tree < len(self.texts)
                claim(listed, f"{where} is {short(tree)}: expected one of the lists of texts")
                return self.texts[tree]
            case StoredForm.PART:
                return self._part(tree, kind, path, where)
            case StoredForm.OWN:
                return _own_form(tree, kind, where)
            case StoredForm.SEQUENCE:
                return self._sequence(tree, kind, path, where)
            case StoredForm.MAPPING:
                claim_kind(tree, dict, where)
                return {name: self.unpack(entry, get_args(kind)[1], path, f"{where}[{name!r}]") for name, entry in tree.items()}
            case StoredForm.PLAIN:
                return tree if kind is Any else claim_kind(tree, kind, where)

    def _part(self, tree: Any, kind: type, path: str, where: str) -> Any:
        claim_kind(tree, dict, where)
        declared = {name: of for name, of in fields_of(kind).items() if name in tree or name not in left_out(kind)}
        for problem, names in (("lacks", declared.keys() - tree.keys()), ("has surplus", tree.keys() - declared.keys())):
            claim(not names, f"{where or 'the executable'} {problem} {', '.join(sorted(names))}")
        values = {name: self.unpack(tree[name], of, path_to(path, name), path_to(where, name)) for name, of in declared.items()}
        return kind(**values)

    def _sequence(self, tree: Any, kind: Any, path: str, where: str) -> Any:
        claim_kind(tree, list, where)
        declared = element_types(kind, len(tree))
        claim(len(declared) == len(tree), f"{where} has {len(tree)} entries: expected {len(declared)}")
        if path in self.later:
            return LaterList(len(tree), lambda: self._made_later(tree, declared, path, where))
        entries = self._entries(tree, declared, path, where)
        return tuple(entries) if get_origin(kind) is tuple else entries

    def _entries(self, tree: list[Any], declared: tuple[Any, ...], path: str, where: str) -> list[Any]:
        kinds = enumerate(zip(tree, declared, strict=True))
        return [self.unpack(entry, of, path, f"{where}[{i}]") for i, (entry, of) in kinds]

    def _made_later(self, tree: list[Any], declared: tuple[Any, ...], path: str, where: str) -> list[Any]:
        """The entries of a list when something is asked of it, with their arrays, which the archive held back."""
        entries = self._entries(tree, declared, path, where)
        self.read_all()
        return entries

    def read_all(self) -> None:
        """Fill the arrays that have been unpacked."""
        unread, self.unread = self.unread, []
        read_all(unread)

    def _array(self, tree: Any, kind: Any, path: str, where: str) -> AnyArray:
        dtype = dtype_of(kind, path)
        named = isinstance(tree, list) and len(tree) in (3, 4) and isinstance(tree[0], str)
        if not named or not all(type(number) is int and number >= 0 for number in tree[1:]):
            raise FileLoadError(f"{where} is {short(tree)}: expected an array")
        name, begin, *shape = tree
        whole = self.whole.get(name)
        if whole is None:
            whole = self._widened(name, kind, dtype, where)
        if whole.dtype != dtype and not (kind in OF_ANY_WIDTH and holds(whole.dtype, dtype)):
            raise FileLoadError(f"{where} is an array of {whole.dtype}: expected {dtype}")
        size = math.prod(shape)
        if begin + size > len(whole):
            raise FileLoadError(f"{where} ends at {begin + size}, but the array {name} has {len(whole)} entries")
        return self._made.setdefault(tuple(tree), whole[begin : begin + size].reshape(shape))

    def _widened(self, name: str, kind: Any, dtype: np.dtype[Any], where: str) -> AnyArray:
        """An array of the file in the type that it stands for, taken out of those that nothing has asked for."""
        claim(name in self.arrays, f"the array {name} of {where} is missing")
        stored = self.arrays.pop(name)
        claim(holds(stored.dtype, dtype), f"{where} is an array of {stored.dtype}: expected {dtype}")
        if kind == Integers and holds(stored.dtype, COMPACT):
            dtype = COMPACT
        elif kind == StructuredArray:
            dtype = stored.dtype
        self._size += stored.size * dtype.itemsize
        claim_unpacked("its arrays take", self._size, self.limit)
        if isinstance(stored, StoredArray | HeldArray):
            self.whole[name] = np.empty(stored.size, dtype)
            self.unread.append((stored, self.whole[name]))
        else:
            self.whole[name] = widened(stored, dtype)
        return self.whole[name]


def claim_kind(tree: Any, kind: type, where: str) -> Any:
    """`tree` if it is of exactly this type, and of 64 bits if it is a number."""
    other = type(tree) is not kind
    if other:  # a text of each value would take longer than all else
        kinds = {int: "a whole number", bool: "true or false", str: "a text", list: "a list", dict: "named values"}
        raise FileLoadError(f"{where or 'the executable'} is {short(tree)}: expected {kinds.get(kind, kind.__name__)}")
    claim(kind is not int or -(1 << 63) <= tree < 1 << 63, f"{where} does not fit in 64 bits")
    return tree


def short(tree: Any) -> str:
    """The beginning of what a tree looks like."""
    text = repr(tree)
    return text if len(text) <= 60 else text[:57] + "..."


def _own_form(tree: Any, kind: Any, where: str) -> Any:
    claim_kind(tree, dict, where)
    try:
        return kind.from_json(tree)
    except PoplarError as problem:
        raise FileLoadError(f"{where} is damaged: {problem}") from problem
