"""The alignment that an annotation demands of a vector's place: ``Input[Annotated[Vector[FLOAT], Aligned(8)]]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypoplar.codelet.ir.terms import Access, Form
from pypoplar.codelet.language.annotations import NotAField
from pypoplar.codelet.language.fields import Aligned
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.types import ElementType

ALIGNMENTS = (4, 8, 16, 32)  # bytes that codelets for the IPU demand: a word, the two and four of its wide loads, and twice that
SPELLING = "Input[Annotated[Vector[FLOAT], Aligned(8)]]"


def demanded_alignment(notes: Sequence[Any]) -> int:
    """The bytes that what stands beside the type in `Annotated` demands; anything but one Aligned(n) is refused."""
    foreign = next((note for note in notes if not isinstance(note, Aligned)), None)
    if foreign is not None:
        shown = "Aligned without its bytes" if foreign is Aligned else repr(foreign)
        raise NotAField(f"Annotated takes Aligned(n) of n bytes here, got {shown}: write {SPELLING}")
    if len(notes) > 1:
        raise NotAField(f"{' and '.join(map(repr, notes))} are two demands on one vector: write the larger one")
    bytes = notes[0].bytes
    if type(bytes) is not int or bytes not in ALIGNMENTS:
        raise NotAField(f"an alignment is 4, 8, 16 or 32 bytes, got {notes[0]!r}")
    return bytes


def check_alignment(bytes: int, access: Access, form: Form, content: ElementType | RecordLayout) -> None:
    """Refuse an alignment of what is no edge or has no elements in a row, and one below that of its elements."""
    if access == "state":
        raise NotAField(f"Aligned is for edges, whose memory is a tensor's: write {SPELLING}, Output[...] or InOut[...]")
    if form == "scalar":
        raise NotAField(f"Aligned is for a Vector or a VectorList; one element lies at a multiple of its size: write {SPELLING}")
    if isinstance(content, RecordLayout):
        least, what = content.alignment, f"a {content.name} lies at a multiple of"
    else:
        least, what = content.size, f"an element of {content.__name__} has"
    if bytes < least:
        raise NotAField(f"Aligned({bytes}) is too little: {what} {least} bytes")
