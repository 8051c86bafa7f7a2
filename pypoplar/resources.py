"""Where the files beside the code are: the libraries' codelets, the tutorials and their data.

In a checkout (and so in an editable install) they stand beside the package; a wheel carries them inside it.
"""

from __future__ import annotations

import ast
import sysconfig
from functools import cache
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

    def text(self) -> str:
        """What the script says of itself: what it shows, what to look at, exercises."""
        return _text(self.path)

    def files(self) -> list[Path]:
        """The script, the files beside it that it imports, also by way of each other, and the data that they read."""
        found = [self.path]
        for path in found:
            beside = [path.with_name(f"{name}.py") for name in _imported(path)]
            found += [one for one in dict.fromkeys(beside) if one.is_file() and one not in found]
        read = any('/ "data"' in path.read_text(encoding="utf-8") for path in found)
        return found + (sorted(self.path.with_name("data").glob("*")) if read else [])


def directory(name: str) -> Path:
    """The directory ``"codelets"``, ``"tutorials"`` or ``"docs"``."""
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
    return _text(path).partition("\n")[0].rstrip(".")


@cache
def _text(path: Path) -> str:
    return ast.get_docstring(_tree(path)) or ""


def _imported(path: Path) -> list[str]:
    """The modules that a script imports by their names, as `import` finds those beside it."""
    nodes = [*ast.walk(_tree(path))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return names + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_installed(filename: str) -> bool:
    """Whether a file is of Python's own library, or of a package, and none of a tutorial's."""
    path = Path(filename).resolve()
    libraries = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(map(path.is_relative_to, libraries)) and not path.is_relative_to(directory("tutorials"))
