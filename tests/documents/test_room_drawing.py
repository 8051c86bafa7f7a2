"""The picture of the rooms, and its text, are what the imports give now."""

import importlib.util
import re
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("documents_rooms", Path(__file__).parents[2] / "docs" / "rooms.py")
ROOMS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ROOMS)


def test_the_rooms_are_drawn_as_they_import_each_other_now():
    floors = ROOMS.drawing()
    assert ROOMS.PICTURE.read_text(encoding="utf-8") == ROOMS.picture(floors), "run: python docs/rooms.py"
    assert ROOMS.PAGE.read_text(encoding="utf-8") == ROOMS.page(floors), "run: python docs/rooms.py"


def test_every_room_is_drawn_above_all_that_it_imports():
    floors = ROOMS.drawing()
    high = {group.name: number for number, floor in enumerate(floors) for group in floor}
    for upper, lowers in ROOMS.imports().items():
        for lower in lowers:
            ends = ROOMS.group_of(upper), ROOMS.group_of(lower)
            assert ends[0] == ends[1] or high[ends[0]] > high[ends[1]], f"{upper} imports {lower}"
    text = ROOMS.picture(floors)
    unseen = [name for name in ROOMS.FLOOR if name and f">{name.split('.')[0]}" not in text and not re.search(rf"\b{name}\b", text)]
    assert unseen == ["__main__"]  # of the command
    assert ROOMS.WORDS.keys() == high.keys()
    assert ROOMS.INNER_WORDS.keys() <= ROOMS.FLOOR.keys()


def test_what_imports_something_higher_is_drawn_higher():
    below = {"ground": set(), "graph": {"ground"}, "engine": {"graph", "ground"}, "other": {"ground"}, "alone": set()}
    assert ROOMS.rows(below) == [["ground", "alone"], ["graph", "other"], ["engine"]]
    below["other"].add("engine")
    assert ROOMS.rows(below) == [["ground", "alone"], ["graph"], ["engine"], ["other"]]
    assert ROOMS.rows({}) == []


def test_lines_of_the_rooms_fit_into_their_boxes():
    for floor in ROOMS.drawing():
        wide = (ROOMS.WIDTH - 2 * ROOMS.EDGE - ROOMS.GAP * (len(floor) - 1)) / len(floor)
        for group in floor:
            assert all(len(line) * ROOMS.LETTER <= wide - 24 for line, *_ in ROOMS.lines(group, wide)), group.name
