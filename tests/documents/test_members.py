"""Poplar's public members that programs use are there, or the README says that they are not."""

import re
from pathlib import Path

import pypoplar

HERE = Path(__file__).parent
README = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")


def listed_members():
    """The members of `poplar_members.txt`, as they are called in Python."""
    for line in (HERE / "poplar_members.txt").read_text(encoding="utf-8").splitlines():
        owner, colon, names = line.partition(": ")
        if colon and not line.startswith("#"):
            yield from (name if owner == "poplar" else f"{owner}.{name}" for name in names.split())


def is_there(member):
    """Whether pypoplar has a member; one that is only annotated is a field."""
    owner = pypoplar
    for name in member.split("."):
        if not hasattr(owner, name) and name not in getattr(owner, "__annotations__", {}):
            return False
        owner = getattr(owner, name, None)
    return True


def said_to_be_missing():
    """The names between backticks in the README's list of Poplar's members that are not there."""
    (item,) = re.findall(r"^- Of Poplar's members .*?(?=^- )", README, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([\w.]+)`", item))


MEMBERS = list(listed_members())


def test_no_member_is_listed_twice():
    assert len(MEMBERS) > 250
    assert [member for member in sorted(set(MEMBERS)) if MEMBERS.count(member) > 1] == []


def test_every_member_is_there_or_in_the_readmes_list_and_not_in_both():
    assert sorted(member for member in MEMBERS if not is_there(member)) == sorted(said_to_be_missing())
