"""The search of the site in Python: what Sphinx's `searchtools.js` finds in a built index, in its order, without a browser."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import frozen

TITLE, PARTIAL_TITLE, TERM, PARTIAL_TERM = 15, 7, 5, 2
OBJECT, PARTIAL_OBJECT, PRIORITIES = 11, 6, {0: 15, 1: 5, 2: -5}


@frozen(eq=False)
class SiteSearch:
    """The index of a built site."""

    root: Path

    @cached_property
    def index(self) -> dict[str, Any]:
        """What is found by."""
        text = (self.root / "searchindex.js").read_text(encoding="utf-8")
        known: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").rstrip().rstrip(";").removesuffix(")"))
        return known

    @cached_property
    def stopwords(self) -> set[str]:
        """Words of a question that nothing is searched for."""
        text = (self.root / "_static" / "language_data.js").read_text(encoding="utf-8")
        listed = re.search(r"stopwords = new Set\((\[.*?\])\)", text, re.DOTALL)
        assert listed is not None
        return set(json.loads(listed[1]))

    def pages(self, question: str) -> list[str]:
        """The pages that a question finds, the first first, each once."""
        asked = question.lower().strip()
        scores: dict[int, float] = {}
        for page, score in [*self._titles(asked), *self._entries(asked), *self._objects(asked), *self._terms(asked)]:
            scores[page] = max(score, scores.get(page, score))
        order = sorted(scores, key=lambda page: (-scores[page], self.index["titles"][page].lower()))
        return [self.index["docnames"][page] for page in order]

    def _titles(self, asked: str) -> Iterator[tuple[int, float]]:
        titles = self.index["titles"]
        for title, places in self.index["alltitles"].items():
            if asked in title.lower() and len(asked) >= len(title) / 2:
                for page, _ in places:
                    yield page, round(TITLE * len(asked) / len(title)) + (titles[page] == title)

    def _entries(self, asked: str) -> Iterator[tuple[int, float]]:
        for entry, places in self.index["indexentries"].items():
            if asked in entry and len(asked) >= len(entry) / 2:
                for page, _, is_main in places:
                    yield page, round(100 * len(asked) / len(entry)) if is_main else -100

    def _objects(self, asked: str) -> Iterator[tuple[int, float]]:
        words = set(re.findall(r"\w+", asked))
        for prefix, rows in self.index["objects"].items():
            for page, kind, priority, _, name in rows:
                whole = f"{prefix}.{name}".lower()
                haystack = f"{prefix} {name} {self.index['objnames'][str(kind)][2]} {self.index['titles'][page]}".lower()
                last = whole.rpartition(".")[2]
                for word in words:
                    if word in whole and all(other in haystack for other in words - {word}):
                        match = OBJECT if word in (whole, last) else PARTIAL_OBJECT if word in last else 0
                        yield page, match + PRIORITIES.get(priority, 0)

    def _terms(self, asked: str) -> Iterator[tuple[int, float]]:
        stem = self._stemmer()
        words = {stem(word) for word in re.findall(r"\w+", asked) if word not in self.stopwords and not word.isdigit()}
        found: dict[int, dict[str, int]] = {}
        for word in words:
            for table, whole, part in (("terms", TERM, PARTIAL_TERM), ("titleterms", TITLE, PARTIAL_TITLE)):
                terms = self.index[table]
                exact = {word: terms[word]} if word in terms else {}
                for places, score in [
                    *((pages, whole) for pages in exact.values()),
                    *((pages, part) for term, pages in terms.items() if not exact and len(word) > 2 and word in term),
                ]:
                    for page in places if isinstance(places, list) else [places]:
                        found.setdefault(page, {})[word] = score
        for page, scores in found.items():
            if len(scores) == len(words):
                yield page, max(scores.values())

    def _stemmer(self) -> Any:
        stemmers = importlib.import_module("snowballstemmer")  # Sphinx has it; only a built site is searched
        return stemmers.stemmer("english").stemWord
