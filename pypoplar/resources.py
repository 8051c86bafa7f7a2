"""Where the files beside the code are: the libraries' codelets, the tutorials and their data.

In a checkout (and so in an editable install) they stand beside the package; a wheel carries them inside it.
"""

from __future__ import annotations

import ast
from pathlib import Path

from attrs import frozen

from pypoplar.errors import FileLoadError
from pypoplar.spelling import nearest_name

PACKAGE = Path(__file__).resolve().parent
GALLERY = "gallery"


@frozen
class Tutorial:
    """A tutorial: its name, the script that runs it, and the first line of what the script says of itself."""

    name: str
    path: Path
    summary: str


def directory(name: str) -> Path:
    """The directory ``"codelets"`` or ``"tutorials"``."""
    for place in (PACKAGE / "_resources" / name, PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileLoadError(f"the directory {name!r} is not there: it should be in {PACKAGE / '_resources'} or beside {PACKAGE}")


def codelets(file: str) -> Path:
    """A file of the libraries' device code, such as ``codelets("popops.py")``."""
    path = directory("codelets") / file
    if not path.is_file():
        raise FileLoadError(f"there is no codelet file {file!r} in {path.parent}")
    return path


def tutorials() -> dict[str, Tutorial]:
    """All tutorials by name, in order of their names: the scripts ``NAME.py``, ``NAME/NAME.py`` and ``gallery/NAME.py``.

    Those of the gallery are called ``gallery/NAME``.
    """
    scripts = [*directory("tutorials").glob("*.py")]
    scripts += [script for script in directory("tutorials").glob("*/*.py") if script.stem == script.parent.name]
    named = {script.stem: script for script in scripts}
    named |= {f"{GALLERY}/{script.stem}": script for script in directory("tutorials").glob(f"{GALLERY}/*.py")}
    return {name: Tutorial(name, named[name], _summary(named[name])) for name in sorted(named) if named[name].stem[0] != "_"}


def tutorial(name: str) -> Tutorial:
    """The tutorial called `name`, or the only one whose name begins so or holds it."""
    known = tutorials()
    fitting = [title for title in known if title.startswith(name)] or [title for title in known if name in title]
    if name in known or len(fitting) == 1:
        return known[name if name in known else fitting[0]]
    near = " or ".join(fitting) or nearest_name(name, known)
    hint = f"; did you mean {near}?" if near else ""
    raise FileLoadError(f"there is no tutorial {name!r}: there are {', '.join(known)}{hint}")


def _summary(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")
