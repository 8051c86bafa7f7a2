"""Files of codelets: that of the running program or of an imported module stands for the module, others are run."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

from pypoplar.errors import CodeletError, FileLoadError
from pypoplar.files import check_regular

_RUNNING = threading.local()  # .files: those that this thread runs for their codelets, the innermost last


def module_of_file(path: Path) -> ModuleType:
    """The module of a file of codelets. Its own errors come through as they are.

    A file that is running for its codelets and asks for them again is a `CodeletError`; one that cannot be read a `FileLoadError`.
    """
    try:
        check_regular(path)
    except FileNotFoundError:
        hint = "" if path.suffix == ".py" else "; codelets are Python classes: give the classes, or the path of their .py file"
        raise FileLoadError(f"no file of codelets at '{path}' (looked in {Path.cwd()}){hint}") from None
    except OSError as problem:
        raise FileLoadError(f"no file of codelets at '{path}': {problem.strerror}") from problem
    whole = path.resolve()
    running: list[Path] = getattr(_RUNNING, "files", [])
    if whole in running:
        way = " -> ".join(file.name for file in (*running[running.index(whole) :], whole))
        raise CodeletError(
            f"'{path}' is being run for its codelets, and asks for them itself ({way}); move addCodelets into a function, "
            'or below if __name__ == "__main__":'
        )
    name = f"{whole.stem}_{hashlib.sha256(str(whole).encode()).hexdigest()[:12]}"
    imported = _imported(path, whole, name)
    return imported if imported is not None else _run(whole, name, [*running, whole])


def _imported(path: Path, whole: Path, ours: str) -> ModuleType | None:
    """The module whose file it is, the running program before others; not one that was run for its codelets."""
    main, endings = sys.modules.get("__main__"), (path.name, whole.name)
    for module in (main, *list(sys.modules.values())):
        names = object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}  # a lazy one stays so
        file = names.get("__file__")
        if not isinstance(file, str) or not file.endswith(endings) or names.get("__name__") == ours:
            continue
        if Path(file).resolve() == whole:
            return module
    return None


def _run(whole: Path, name: str, files: list[Path]) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, whole)
    if spec is None or spec.loader is None:
        raise FileLoadError(f"'{whole}' is not a Python file: codelets come in .py files")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where annotations and dataclasses look for it
    _RUNNING.files = files
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        _RUNNING.files = files[:-1]
    return module


def is_unfinished(module: ModuleType) -> bool:
    """Whether the module may define more than it has by now."""
    return module.__name__ == "__main__" or bool(getattr(getattr(module, "__spec__", None), "_initializing", False))
