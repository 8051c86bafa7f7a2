"""A codelet as the graph and the engines hold it: its fields, its source, and the typed form that is made of it on demand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from pypoplar.codelet.ir.terms import Kind, Location
from pypoplar.codelet.language.declaration import Bindings, declared_of
from pypoplar.codelet.language.declaration import Field as Field
from pypoplar.codelet.language.environment import codelet_source
from pypoplar.codelet.language.fields import Vertex
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.errors import FileLoadError

if TYPE_CHECKING:
    from pypoplar.codelet.ir.typed import TypedCodelet

Estimator = Callable[[Any], Any]  # of a `pypoplar.VertexIntrospector`; gives worker cycles


@frozen
class Codelet:
    """One kind of vertex. Equal sources make equal codelets.

    `estimator` is the class's ``cycles`` method; it is called on the host, with a `VertexIntrospector`, and is not part of the JSON
    form.
    """

    source: CodeletSource
    location: Location = field(eq=False)
    estimator: Estimator | None = field(default=None, eq=False)

    @functools.cached_property
    def typed(self) -> TypedCodelet:
        """The typed form, translated when it is first asked for: what device code cannot do is a `CodeletError`."""
        from pypoplar.codelet.frontend.translate import translate  # late: executables are loaded without it

        return translate(self.source)

    def __hash__(self) -> int:
        return hash(self.source.name)

    @staticmethod
    def of_class(cls: type[Vertex], bindings: Bindings | None = None) -> Codelet:
        """The codelet of a class, or of a template with `bindings` for its type variables. It is translated here."""
        declared = declared_of(cls)
        source = codelet_source(cls, bindings or {})
        codelet = Codelet(source, Location(declared.file, declared.line, cls.__qualname__), _estimator(cls))
        _ = codelet.typed  # what cannot be translated is refused where it is added
        return codelet

    @property
    def name(self) -> str:
        """As in ``addVertex``: ``"Scale"``, ``"Scale<float>"``."""
        return self.source.name

    @property
    def kind(self) -> Kind:
        return self.source.kind

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.source.fields

    @property
    def distinct(self) -> tuple[tuple[int, int], ...]:
        """The positions of fields that are demanded not to overlap."""
        names = [field.name for field in self.fields]
        return tuple((names.index(first), names.index(second)) for first, second in self.source.distinct)

    @functools.cached_property
    def alignments(self) -> tuple[int, ...]:
        """For each field what the place of its elements is a multiple of. Bytes that code sees as records begin where these may."""
        views = max((record.alignment for record in self.source.records), default=1)
        of_bytes = [field.form != "scalar" and field.type.code in ("i8", "u8") for field in self.fields]
        return tuple(max(field.alignment, views if bytes else 1) for field, bytes in zip(self.fields, of_bytes, strict=True))

    def to_json(self) -> dict[str, Any]:
        """The codelet as the json module writes it."""
        return {
            "source": self.source.to_json(),
            "file": self.location.file,
            "line": self.location.line,
            "class": self.location.function,
        }

    @staticmethod
    def from_json(tree: Mapping[str, Any]) -> Codelet:
        """The codelet that `to_json` wrote; nothing of it is translated yet or executed. Damage is a `FileLoadError`."""
        try:
            location = Location(str(tree["file"]), int(tree["line"]), str(tree["class"]))
            source = tree["source"]
        except (KeyError, TypeError, ValueError) as error:
            raise FileLoadError(f"damaged codelet: {type(error).__name__}: {error}") from error
        return Codelet(CodeletSource.from_json(source), location)


def _estimator(cls: type[Vertex]) -> Estimator | None:
    for base in cls.__mro__:
        if "cycles" in vars(base) and not isinstance(base.__dict__["cycles"], int | float):
            plain = vars(base)["cycles"]
            if isinstance(plain, staticmethod | classmethod):
                return getattr(cls, "cycles")  # type: ignore[no-any-return]  # noqa: B009
            return functools.partial(plain, cls)  # constants of the class are reached through self
    return None
