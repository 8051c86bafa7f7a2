"""Finds and keeps what is known of graphs, beside machine code: where that is kept, nobody else may write."""

from __future__ import annotations

from attrs import define, field
from torch import nn
from torch.export import ExportedProgram

from pypoplar.host_code import cache
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts
from pypoplar.poptorch.executor.known_graphs.exported_key import exported_key
from pypoplar.poptorch.executor.known_graphs.facts_text import of_text, to_text
from pypoplar.poptorch.executor.model_settings import ModelSettings


@define(eq=False)
class GraphMemory:
    """What is known of the graph of a module, by the program that it is exported as."""

    module: nn.Module
    training: bool
    settings: ModelSettings
    _key: str | None = field(default=None, init=False)  # of the program that was looked for last

    def find(self, exported: ExportedProgram) -> GraphFacts | None:
        """The facts of the graph that a program would become, if it has become one before."""
        key = exported_key(exported, self.module, self.training, self.settings)
        self._key = None if key is None else f"graph facts {key}"
        content = None if self._key is None else cache.load(self._key)
        if content is None:
            return None
        try:
            return of_text(content.decode(), exported.call_spec.out_spec, exported.constants)
        except (ValueError, KeyError, TypeError, AttributeError):  # of operations that are gone, or constants of other names
            return None

    def keep(self, facts: GraphFacts) -> None:
        """Keep the facts of the graph that the program has become; nothing where more than the program decides them."""
        text = None if self._key is None else to_text(facts)
        if self._key is not None and text is not None:
            cache.store(self._key, text.encode())
