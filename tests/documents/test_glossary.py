"""The page of words has those that reports and messages use, in order, each with a page that tells more."""

import re
from pathlib import Path

import attrs

from pypoplar.executable.memory_use import TileMemory
from pypoplar.report.phases import PHASES, WAITING

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \*\*([^*]+)\*\* \| (.*) \| (.*) \|$", PAGE, re.M)
WORDS = [word for word, _, _ in ROWS]
WITH_EXCHANGE = {"exchange between IPUs", "host exchange"}  # which stand with *exchange*


def test_words_stand_once_and_in_order():
    assert len(ROWS) == len(re.findall(r"^\|", PAGE, re.M)) - 2
    assert sorted(set(WORDS), key=lambda word: word.lower().replace("-", "")) == WORDS


def test_each_word_has_a_link():
    assert [word for word, _, more in ROWS if "](" not in more] == []


def test_the_phases_and_the_categories_of_memory_are_explained():
    phases = {phase.label[0].lower() + phase.label[1:] for phase in PHASES} - WITH_EXCHANGE | {WAITING[0]}
    categories = {one.name.replace("_", " ").removesuffix("s") for one in attrs.fields(TileMemory)} - {"not always live"}
    assert (phases | categories) - set(WORDS) == set()
