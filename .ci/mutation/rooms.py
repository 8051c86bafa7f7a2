"""Which modules a room has, and which tests are those of its folder."""

from __future__ import annotations

from pathlib import Path

from changed_tests import TESTED_IN

PACKAGE = "pypoplar"
PRICED = ("pypoplar/codelet/cost/", "pypoplar/compiler/exchange/")  # whose figures tests/model holds against published ones


class UnknownRoom(Exception):
    """A name that is no room and no module, or one whose tests are not known."""


def modules_of(root: Path, name: str) -> list[str]:
    """The modules of a room or module, as paths from `root`: of ``compiler/liveness``, ``compiler.liveness.atoms`` or a path."""
    place = name.removesuffix(".py").strip("/")
    place = (place if "/" in place else place.replace(".", "/")).removeprefix(PACKAGE).strip("/")
    path = root / PACKAGE / place
    found = [path.with_suffix(".py")] if place and path.with_suffix(".py").is_file() else []
    if place and path.is_dir():
        found += sorted(path.rglob("*.py"))
    if not found:
        raise UnknownRoom(f"{name} is no room and no module of {PACKAGE}")
    return [str(each.relative_to(root)) for each in found]


def folders_of_tests(root: Path, module: str) -> list[str]:
    """The tests of a module's room, as paths from `root`."""
    room = Path(module).relative_to(PACKAGE).parts[0].removesuffix(".py")
    known = [root / "tests" / place for place in TESTED_IN.get(room, (room,))]
    found = [place for place in known if place.exists()] or sorted((root / "tests").glob(f"test_{room}*.py"))
    if module.startswith(PRICED):
        found += [root / "tests" / "model"]
    if not found:
        raise UnknownRoom(f"the tests of {module} have no folder of its room's name: name them with --tests")
    return [str(each.relative_to(root)) for each in found]
