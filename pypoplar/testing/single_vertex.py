"""Running one vertex of a codelet: the shortest unit test of device code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.braces import CONNECTIONS, ordered
from pypoplar.codelet.language.declaration import Field
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.registry import CodeletRegistry
from pypoplar.device import Device
from pypoplar.engine.engine import Mode
from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.host_values import values_of
from pypoplar.testing.running import MODES, Result, run
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from pypoplar.codelet.language.fields import Vertex
    from pypoplar.options import OptionValue


@public
def run_vertex(
    codelet: type[Vertex],
    fields: Mapping[str, object],
    *,
    tile: int = 0,
    device: Device | None = None,
    options: Mapping[str, OptionValue] | None = None,
    modes: Sequence[Mode] = MODES,
) -> Result:
    """Run one vertex of a codelet on the values of its fields, in both engines, and return what it left in them.

    Everything lies on the vertex's tile, so nothing is exchanged.

    Parameters
    ----------
    codelet:
        A class, or an instance of a template.
    fields:
        By name of a field: of a scalar a number, of a `Vector` a sequence, of a `VectorList` a sequence of sequences; of a
        `Vector` of records an array of their dtype, or what makes one. Outputs need a value for their length and for what the
        vertex does not write.
    tile:
        Where it all lies.
    device:
        What to run on; None: ``IPUModel("tiny")``, with 16 tiles.
    options:
        Engine options.
    modes:
        The modes of `Engine` that are compared.

    Returns
    -------
    Result
        The edges by name, as arrays of the fields' types, lists of them for a `VectorList`; plain fields are not in it.

    Raises
    ------
    AssertionError
        If the engines do not agree.
    PoplarTypeError, TensorShapeError
        If a value is none that its field can have. An error of the vertex is raised here, once both engines have raised it.

    Examples
    --------
    >>> from pypoplar import FLOAT, InOut, Vector, Vertex, testing
    >>> class Double(Vertex):
    ...     x: InOut[Vector[FLOAT]]
    ...
    ...     def compute(self):
    ...         for i in range(len(self.x)):
    ...             self.x[i] *= 2.0
    >>> testing.run_vertex(Double, {"x": [1.0, 2.0]})["x"].tolist()
    [2.0, 4.0]
    """
    if not isinstance(ordered(fields, "the fields of a vertex", CONNECTIONS), Mapping):
        raise PoplarTypeError(f"the fields of a vertex are a dict from names to values, got {fields!r}; write {{'x': [1.0]}}")
    declared = {field.name: field for field in CodeletRegistry().find(codelet)[1].fields}
    edges: dict[str, Any] = {name: value for name, value in fields.items() if name in declared and declared[name].access != "state"}
    arrays: dict[str, AnyArray] = {}
    rows: dict[str, list[str]] = {}
    for name, value in edges.items():
        if declared[name].form == "list":
            ordered(value, f"the rows of field {name!r}", "[[1.0, 2.0], [3.0]]")
            rows[name] = [f"{name}_row_{number}" for number in range(len(value))]
            arrays.update((row, _array(declared[name], values, 1)) for row, values in zip(rows[name], value, strict=True))
        else:
            arrays[name] = _array(declared[name], value, 0 if declared[name].form == "scalar" else 1)

    def build(graph: Any, **tensors: Any) -> Any:
        compute_set = graph.addComputeSet("run_vertex")
        values = {
            name: [tensors[row] for row in rows[name]] if name in rows else tensors.get(name, value)
            for name, value in fields.items()
        }
        graph.setTileMapping(graph.addVertex(compute_set, codelet, values), tile)
        return compute_set

    result = run(build, arrays, mapping=dict.fromkeys(arrays, tile), device=device, options=options, modes=modes)
    gathered = {name: [result[row] for row in rows[name]] if name in rows else result[name] for name in edges}
    for name in arrays:
        if name in declared and (record := declared[name].record) is not None:
            gathered[name] = result[name].view(record.dtype)
    return Result(gathered, result.streams, result.printed, result.engine)


def _bytes(field: Field, record: RecordLayout, value: Any) -> AnyArray:
    """The bytes of records."""
    try:
        given = np.ascontiguousarray(np.asarray(value, record.dtype))
    except (TypeError, ValueError) as error:
        raise PoplarTypeError(f"field {field.name!r} takes an array of {record.name}.dtype: {error}") from None
    if given.ndim != 1:
        raise TensorShapeError(f"field {field.name!r} takes a sequence of records, got an array of shape {list(given.shape)}")
    return given.view(np.uint8)


def _array(field: Field, value: Any, rank: int) -> AnyArray:
    ordered(value, f"field {field.name!r}", "[1.0, 2.0]")
    if field.record is not None:
        return _bytes(field, field.record, value)
    wanted = "a number" if rank == 0 else "a sequence of numbers"
    try:
        given = np.asarray(value)
    except ValueError:
        raise TensorShapeError(f"field {field.name!r} takes {wanted}, got rows of different lengths") from None
    if given.ndim != rank:
        raise TensorShapeError(f"field {field.name!r} takes {wanted}, got an array of shape {list(given.shape)}")
    return values_of(field.type, value, given.size, f"field {field.name!r}").reshape(given.shape)
