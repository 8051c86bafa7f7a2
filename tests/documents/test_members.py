"""Poplar's public members that programs use are there, as what they are in Poplar, or stand in docs/not-there-yet.md."""

import enum
import inspect
import re
from pathlib import Path

import pytest

import pypoplar
from pypoplar.types import ElementType

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
MISSING = (DOCS / "not-there-yet.md").read_text(encoding="utf-8")
SHEET = (DOCS / "cheat-sheet.md").read_text(encoding="utf-8")
LINE = re.compile(r"(\S+) (classes|types|functions|methods|static methods|fields|values|names): (.+)")


def listed_members():
    """The members of `poplar_members.txt`: what has them, their name, what they are."""
    for line in (HERE / "poplar_members.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            owner, kind, names = LINE.fullmatch(line).groups()
            yield from ((owner, name, kind) for name in names.split())


LISTED = list(listed_members())
MEMBERS = {name if owner == "poplar" else f"{owner}.{name}": kind for owner, name, kind in LISTED if owner != "C++"}
INSTEAD = [name for owner, name, _ in LISTED if owner == "C++"]


def found(member):
    """What pypoplar has under a name, unbound; a field that is only annotated is its annotation. None: nothing."""
    owner = pypoplar
    *owners, last = member.split(".")
    for name in owners:
        owner = getattr(owner, name)
    if inspect.isclass(owner):
        field = vars(owner).get("__annotations__", {}).get(last)
        return inspect.getattr_static(owner, last, field)
    return getattr(owner, last, None)


def is_of_kind(value, kind):
    """Whether a member is used as Poplar's is: called or not, on an object or on the class."""
    static = isinstance(value, staticmethod | classmethod)
    match kind:
        case "classes":
            return inspect.isclass(value) and not isinstance(value, ElementType)
        case "types":
            return isinstance(value, ElementType)
        case "functions" | "methods":
            return inspect.isfunction(value) and not static
        case "static methods":
            return static
        case "fields":
            return isinstance(value, str | property)  # an annotation, or computed
        case "values":
            return isinstance(value, enum.Enum)
    raise AssertionError(kind)


def said_to_be_missing():
    """The names between backticks in the list of Poplar's members that are not there."""
    (item,) = re.findall(r"^- Of Poplar's members .*?(?=^- )", MISSING, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([\w.]+)`", item))


def test_no_member_is_listed_twice():
    assert len(MEMBERS) > 280
    assert len(MEMBERS) + len(INSTEAD) == len(LISTED)


def test_every_member_is_there_or_in_the_list_of_missing_ones_and_not_in_both():
    assert sorted(member for member in MEMBERS if found(member) is None) == sorted(said_to_be_missing())


def test_members_are_what_they_are_in_poplar():
    there = {member: value for member in MEMBERS if (value := found(member)) is not None}
    assert [f"{member}: {value!r}" for member, value in there.items() if not is_of_kind(value, MEMBERS[member])] == []


def test_what_python_does_not_need_stands_in_the_cheat_sheet_with_what_python_has():
    table = SHEET.partition("| Poplar C++ | pypoplar |")[2].partition("\n\n")[0]
    rows = [row.split(" | ")[0] for row in table.splitlines()]
    assert INSTEAD
    assert [name for name in INSTEAD if not any(re.search(rf"\b{name}\b", row) for row in rows)] == []


@pytest.mark.parametrize(("member", "kind"), [
    ("Tensor.shape", "fields"),
    ("IPUModel.numIPUs", "methods"),
    ("Device.createCPUDevice", "methods"),
    ("Tensor.slice", "static methods"),
    ("FLOAT", "classes"),
    ("concat", "classes"),
    ("SyncType.GLOBAL", "types"),
    ("Graph", "functions"),
    ("Sequence", "values"),
])  # fmt: skip
def test_a_member_of_another_kind_is_found(member, kind):
    assert not is_of_kind(found(member), kind)
