"""A codelet's source: all that the translator needs, on its own.

The text of ``compute`` and of the helper functions it reaches, the fields, and the meaning of every name these use, frozen
when the codelet is added. It can be written as JSON and read in another process, where only the translator sees it: the
user's Python is parsed there, never executed.
"""

from __future__ import annotations

import base64
from typing import Any, get_args
from typing import Literal as OneOf

from attrs import evolve, field, frozen

from pypoplar.codelet.ir.terms import ACCESSES, FORMS, KINDS, Kind, exactly
from pypoplar.codelet.language.alignments import check_alignment, demanded_alignment
from pypoplar.codelet.language.annotations import NotAField
from pypoplar.codelet.language.constant_tables import ConstantTable
from pypoplar.codelet.language.declaration import Field
from pypoplar.codelet.language.defaults import Default, default_value
from pypoplar.codelet.language.fields import NEAREST, Aligned
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.language.source_text import Listing
from pypoplar.errors import FileLoadError
from pypoplar.types import BOOL, BY_NAME, UNSIGNED_CHAR

Sort = OneOf["constant", "table", "record", "helper", "method", "math", "ipu", "builtin", "type", "foreign", "missing"]


@frozen
class Meaning:
    """What a name means in device code.

    ``constant``: `value` is the number or text. ``table``, ``record``: its position in `CodeletSource.tables` or `.records`.
    ``helper``, ``method``: that of a function in `CodeletSource.functions`; a method gets the vertex as its first argument.
    ``math``, ``ipu``, ``builtin``, ``type``: `value` is the name there. ``foreign``: something device code cannot use, described by
    `value`. ``missing``: nothing has that name.
    """

    sort: Sort
    value: int | float | bool | str = field(eq=exactly)


@frozen
class FunctionSource:
    """The text of a function and the meanings of the names in it that are not its own."""

    name: str
    listing: Listing
    names: dict[str, Meaning]  # dotted names as written: "math.exp", "SIZE"
    defaults: dict[str, Meaning] = field(factory=dict)  # of parameters; frozen values


@frozen
class CodeletSource:
    """A codelet's own text, with every constant and helper that it names, so that nothing else is needed to translate it."""

    name: str
    kind: Kind
    fields: tuple[Field, ...]
    functions: tuple[FunctionSource, ...]  # compute comes first
    attributes: dict[str, Meaning]  # class attributes reached through the vertex: self.SIZE, self.helper
    tables: tuple[ConstantTable, ...] = ()
    records: tuple[RecordLayout, ...] = ()  # that device code names
    distinct: tuple[tuple[str, str], ...] = ()  # fields that are demanded not to overlap
    writes_all: tuple[str, ...] = ()  # Outputs that every run writes in full, as is promised
    always_nearest: bool = False  # halves are never rounded at random

    def __hash__(self) -> int:
        return hash((self.name, *(function.listing for function in self.functions)))

    def to_json(self) -> dict[str, Any]:
        """A tree of dicts, lists, strings and numbers, as the json module writes them."""
        return {
            "name": self.name,
            "kind": self.kind,
            "fields": [
                [
                    field.name,
                    field.access,
                    field.form,
                    field.type.__name__ if field.record is None else field.record.to_json(),
                    _write_default(field.default),
                    field.aligned,
                    field.pointer_bytes,
                    field.row_bytes,
                ]
                for field in self.fields
            ],
            "functions": [
                {
                    "name": function.name,
                    "file": function.listing.file,
                    "line": function.listing.first_line,
                    "text": function.listing.text,
                    "places": list(function.listing.places),
                    "names": _write(function.names),
                    "defaults": _write(function.defaults),
                }
                for function in self.functions
            ],
            "attributes": _write(self.attributes),
            "tables": [
                [table.type.__name__, list(table.shape), base64.b64encode(table.data).decode("ascii")] for table in self.tables
            ],
            "records": [record.to_json() for record in self.records],
            "distinct": [list(pair) for pair in self.distinct],
            "writes_all": list(self.writes_all),
            "rounding": NEAREST if self.always_nearest else "",
        }

    @staticmethod
    def from_json(tree: Any) -> CodeletSource:
        """The source that `to_json` wrote; else `FileLoadError`. Nothing of it is executed."""
        try:
            functions = tuple(
                FunctionSource(
                    _text(row["name"]),
                    Listing(
                        _text(row["file"]), _number(row["line"]), _text(row["text"]), tuple(map(_number, row.get("places", ())))
                    ),
                    _read(row["names"]),
                    _read(row["defaults"]),
                )
                for row in tree["functions"]
            )
            fields = tuple(_read_field(*row) for row in tree["fields"])
            source = CodeletSource(
                _text(tree["name"]),
                _one_of(tree["kind"], *KINDS),
                fields,
                functions,
                _read(tree["attributes"]),
                tuple(_read_table(*row) for row in tree["tables"]),
                tuple(RecordLayout.from_json(record) for record in tree["records"]),
                tuple((_text(first), _text(second)) for first, second in tree["distinct"]),
                tuple(map(_text, tree["writes_all"])),
                _one_of(tree["rounding"], "", NEAREST) == NEAREST,
            )
            source._check()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileLoadError(f"damaged source of a codelet: {type(error).__name__}: {error}") from error
        return source

    def _check(self) -> None:
        """Raise ValueError where a position or a name does not fit the rest."""
        if not self.functions:
            raise ValueError("a codelet without functions")
        if len({field.name for field in self.fields}) != len(self.fields):
            raise ValueError("two fields of one name")
        edges = [field.name for field in self.fields if field.access != "state" and field.form != "scalar"]
        for first, second in self.distinct:
            if first not in edges or second not in edges[edges.index(first) + 1 :]:
                raise ValueError(f"{first!r} and {second!r} cannot be kept apart")
        outputs = {field.name for field in self.fields if field.access == "output" and field.record is None}
        if not outputs.issuperset(self.writes_all):
            raise ValueError(f"not all of {self.writes_all!r} are Outputs")
        functions = len(self.functions)
        counts = {"helper": functions, "method": functions, "table": len(self.tables), "record": len(self.records)}
        for names in (
            self.attributes,
            *(function.names for function in self.functions),
            *(function.defaults for function in self.functions),
        ):
            for meaning in names.values():
                if meaning.sort in counts:
                    if not isinstance(meaning.value, int) or not 0 <= meaning.value < counts[meaning.sort]:
                        raise ValueError(f"no {meaning.sort} {meaning.value!r}")
                elif meaning.sort == "type" and meaning.value not in BY_NAME:
                    raise ValueError(f"no type {meaning.value!r}")
                elif meaning.sort != "constant" and not isinstance(meaning.value, str):
                    raise ValueError(f"{meaning.sort} {meaning.value!r}")


def _write(names: dict[str, Meaning]) -> dict[str, list[Any]]:
    return {key: [meaning.sort, _write_value(meaning.value)] for key, meaning in names.items()}


def _write_value(value: Any) -> Any:
    return {"float": value.hex()} if isinstance(value, float) else value


def _read_value(value: Any) -> Any:
    return float.fromhex(value["float"]) if isinstance(value, dict) else value


def _write_default(default: Default | None) -> Any:
    return [_write_value(value) for value in default] if isinstance(default, tuple) else _write_value(default)


def _read(tree: Any) -> dict[str, Meaning]:
    meanings = {}
    for key, (sort, written) in tree.items():
        value = _read_value(written)
        if not isinstance(value, int | float | str):
            raise ValueError(f"{key}: {value!r}")
        meanings[_text(key)] = Meaning(_one_of(sort, *get_args(Sort)), value)
    return meanings


def _read_field(name: Any, access: Any, form: Any, type: Any, written: Any, aligned: Any, *layout: Any) -> Field:
    pointer, row = layout or (0, 0)  # which files of earlier versions have not
    if not all(size.__class__ is int and 0 <= size <= 16 for size in layout):
        raise ValueError(f"{name}: a layout of {layout!r} bytes")
    field = _read_alignment(_read_content(name, access, form, type, written), aligned)
    return evolve(field, pointer_bytes=pointer, row_bytes=row)


def _read_alignment(field: Field, aligned: Any) -> Field:
    if type(aligned) is int and aligned == 0:
        return field
    try:
        alignment = demanded_alignment([Aligned(aligned)])
        check_alignment(alignment, field.access, field.form, field.type if field.record is None else field.record)
    except NotAField as reason:
        raise ValueError(f"{field.name}: {reason}") from reason
    return evolve(field, aligned=alignment)


def _read_content(name: Any, access: Any, form: Any, type: Any, written: Any) -> Field:
    if isinstance(type, list):
        if (access, form, written) not in {("input", "vector", None), ("output", "vector", None), ("inout", "vector", None)}:
            raise ValueError(f"records in a field that is {access} {form}")
        return Field(_text(name), access, "vector", UNSIGNED_CHAR, record=RecordLayout.from_json(type))
    field = Field(_text(name), _one_of(access, *ACCESSES), _one_of(form, *FORMS), BY_NAME[type])
    if written is None:
        return field
    if field.access != "state":
        raise ValueError(f"an edge with a default: {name}")
    value = [_read_value(element) for element in written] if isinstance(written, list) else _read_value(written)
    return evolve(field, default=default_value(field.type, field.form, value))


def _read_table(type: Any, shape: Any, data: Any) -> ConstantTable:
    if not all(isinstance(size, int) for size in shape):
        raise ValueError(f"a table of shape {shape!r}")
    table = ConstantTable(BY_NAME[type], tuple(shape), base64.b64decode(_text(data), validate=True))
    if table.type is BOOL and not set(table.data) <= {0, 1}:
        raise ValueError("a table of BOOLs that are neither")
    return table


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"expected a line number, got {value!r}")
    return value


def _one_of(value: Any, *allowed: str) -> Any:
    if value not in allowed:
        raise ValueError(f"expected one of {', '.join(allowed)}, got {value!r}")
    return value
