"""Codelets that do what others do and demand more of the memory of their fields, and what an executable gives them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from random import Random
from types import new_class
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from engine_random import fields_of

from pypoplar import Aligned, Executable
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.alignments import ALIGNMENTS
from pypoplar.codelet.language.constraints import constraint_of
from pypoplar.executable.vertex_rows import ListedRows, rows_by_codelet
from pypoplar.interface.edge_rows import RowEntry, entry_words
from pypoplar.interface.layout import NOTHING


def demanding(codelet: Any, alignments: Mapping[str, int], constraint: str | list[str] = "") -> Any:
    """A codelet of the same name and fields, of which those that `alignments` names are aligned, with a constraint."""

    def fill(namespace: dict[str, Any]) -> None:
        annotations = {}
        for attribute, annotation in codelet.__annotations__.items():
            bytes = alignments.get(attribute.removesuffix("_"), 0)
            content = Annotated[get_args(annotation)[0], Aligned(bytes)] if bytes else None
            annotations[attribute] = get_origin(annotation)[content] if bytes else annotation
        namespace.update(__annotations__=annotations, __module__=codelet.__module__)

    return new_class(codelet.__name__, (codelet,), {"constraint": constraint} if constraint else {}, fill)


def drawn_alignments(codelet: Any, random: Random) -> dict[str, int]:
    """Alignments for some of the vectors and lists of a codelet."""
    return {
        field.name: random.choice([bytes for bytes in ALIGNMENTS if bytes >= field.type.size])
        for field in fields_of(codelet)
        if field.access != "state" and field.form != "scalar" and random.random() < 0.7
    }


def drawn_constraints(codelet: Any, random: Random) -> list[str]:
    """Constraints on some pairs of the vectors and lists of a codelet."""
    edges = [field for field in fields_of(codelet) if field.access != "state" and field.form != "scalar"]
    return [constraint_of(*pair) for pair in combinations(edges, 2) if random.random() < 0.7]


Span = tuple[Codelet, str, int, int, int]  # codelet, field, vertex in `Computes.vertex`, offset on its tile, elements


def spans(executable: Executable) -> Iterator[Span]:
    """What each vertex is given for each vector and each row."""
    computes, touched = executable.computes, executable.touches is not None
    table = computes.row_table.reshape(-1, entry_words(record_touches=touched))
    for rows in rows_by_codelet(executable.codelets, computes, record_touches=touched):
        for field, words in zip(rows.codelet.fields, rows.layout.fields, strict=True):
            if words.extent == NOTHING:
                continue
            start, length = computes.words[rows.first_word + words.start], computes.words[rows.first_word + words.extent]
            owner = np.arange(len(start))
            if field.form == "list":
                listed = ListedRows.of(start, length)
                owner, start, length = listed.owner, table[listed.entry, RowEntry.ADDRESS], table[listed.entry, RowEntry.LENGTH]
            for position, offset, count in zip(rows.position[owner].tolist(), start.tolist(), length.tolist(), strict=True):
                yield rows.codelet, field.name, position, offset, count


def check_aligned(executable: Executable) -> int:
    """All vectors and rows of an executable lie as their codelet demands; how many are demanded to."""
    demanded = 0
    for codelet, name, _, offset, length in spans(executable):
        (alignment,) = (field.aligned for field in codelet.fields if field.name == name)
        demanded += alignment > 0
        assert length == 0 or offset % max(alignment, 1) == 0, (codelet.name, name, offset)
    return demanded


def check_apart(executable: Executable) -> int:
    """No two fields that their codelet demands to be apart overlap; how many pairs of vectors or rows there are."""
    places: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    codelets = {}
    for codelet, name, vertex, offset, length in spans(executable):
        (size,) = (field.type.size for field in codelet.fields if field.name == name)
        places[vertex, name].append((offset, offset + length * size))
        codelets[vertex] = codelet
    demanded = 0
    for vertex, codelet in codelets.items():
        for one, other in codelet.source.distinct:
            for (begin, end), (low, high) in product(places[vertex, one], places[vertex, other]):
                demanded += 1
                assert max(begin, low) >= min(end, high), (codelet.name, one, other, begin, low)
    return demanded
