"""A C++ file parsed: the flags of `addCodelets`, where headers are looked for, and what the compiler says of errors."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from pypoplar.codelet.cpp_tree.clang_library import clang
from pypoplar.errors import CodeletCompileError, FileLoadError, PoplarTypeError
from pypoplar.files import check_regular
from pypoplar.spelling import nearest

HEADERS = Path(__file__).parent.parent / "cpp" / "headers"
_TARGET = (
    "-x",
    "c++",
    "-target",
    "i386-none-elf",
    "-msse2",
    "-nostdinc",
    "-fno-exceptions",
    "-ferror-limit=0",
    "-fno-access-control",
    "-Wno-everything",
    "-Wundef",
    "-Wreturn-type",
)
_DEFINES = ("-D__IPU__=1", "-D__POPC__=1", "-D__IPU_ARCH_VERSION__=21", "-DPYPOPLAR=1")
_VALUED = ("-D", "-U", "-I", "-include", "-isystem")
_PASSED = ("-D", "-U", "-I", "-std=", "-isystem", "-include", "-f")
_PRIVATE = re.compile(r"\b(?:CSR|TMEM|TEXCH)_\w+")  # numbers of the machine; our headers have the names of some, and no values
_IGNORED = ("-O", "-g", "-W", "-target", "-m")  # they change nothing here
_STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++23", "c++1y", "c++1z", "c++2a", "c++2b")
_INSTEAD = {
    **dict.fromkeys(
        ("vector", "string", "map", "unordered_map", "set", "list", "deque", "memory"), "declare an array, float work[16]"
    ),
    **dict.fromkeys(("iostream", "sstream", "fstream", "ostream", "iomanip"), 'write printf("%f\\n", x) of <print.h>'),
    **dict.fromkeys(("thread", "mutex", "atomic"), "write a MultiVertex, whose bool compute(unsigned worker) runs on all workers"),
}
_NO_RETURN = "non-void function does not return a value"  # what it gives is undefined
_NOT_THERE = re.compile(rf"^'({'|'.join(_INSTEAD)})' file not found$")
_KNOWN = ("-D", "-U", "-I", "-std=c++17", "-O3", "-g", "-include", "-isystem")


@frozen
class CppFile:
    """What is parsed: the text, the name that messages give it, and the flags."""

    name: str
    text: str
    flags: tuple[str, ...] = ()

    def line(self, number: int) -> str:
        """A line of the text."""
        lines = self.text.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


def read_file(path: Path, flags: Sequence[str]) -> CppFile:
    """The text of a file; what cannot be read is a `FileLoadError`."""
    try:
        check_regular(path)
        return CppFile(str(path), path.read_text(encoding="utf-8"), tuple(flags))
    except FileNotFoundError:
        raise FileLoadError(f"no file of codelets at '{path}' (looked in {Path.cwd()})") from None
    except UnicodeDecodeError as problem:
        raise FileLoadError(f"'{path}' is not UTF-8: byte {problem.start} is 0x{problem.object[problem.start]:02X}") from None
    except OSError as problem:
        raise FileLoadError(f"no file of codelets at '{path}': {problem.strerror}") from problem


def flags_of(text: object) -> tuple[str, ...]:
    """The flags in the text of `compileFlags`; unknown ones are a `CodeletCompileError`."""
    if not isinstance(text, str):
        raise PoplarTypeError(f"compileFlags is a text such as '-DX=1 -Idir -O3', got {text!r}")
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise CodeletCompileError(f"compileFlags {text!r}: {problem}") from None
    flags: list[str] = []
    while words:
        word = words.pop(0)
        if word in _VALUED:
            if not words:
                raise CodeletCompileError(f"compileFlags: {word} needs a value behind it")
            flags += [word, words.pop(0)]
        elif word.startswith("-std=") and word.removeprefix("-std=").replace("gnu", "c") not in _STANDARDS:
            name = word.removeprefix("-std=")
            raise CodeletCompileError(f"compileFlags: unknown standard '{name}'{nearest(name, _STANDARDS[:5])}")
        elif word.startswith(_PASSED):
            flags.append(word)
        elif not word.startswith(_IGNORED):
            raise CodeletCompileError(f"compileFlags: unknown flag '{word}'{nearest(word, _KNOWN)}")
    return tuple(flags)


@frozen
class TranslationUnit:
    """A parsed file, and the files that were read for it."""

    file: CppFile
    root: Any
    headers: tuple[str, ...]


def parse(file: CppFile, addition: str = "") -> TranslationUnit:
    """The tree of a file with some lines behind its end. Errors of the compiler are a `CodeletCompileError` with all of them."""
    flags = file.flags if any(flag.startswith("-std=") for flag in file.flags) else (*file.flags, "-std=c++17")
    directory = str(Path(file.name).resolve().parent)
    arguments = [*_TARGET, *_DEFINES, *flags, f"-isystem{HEADERS}", f"-I{directory}"]
    texts = {file.name: f"{file.text}\n{addition}"}
    unit = clang().index.parse(file.name, arguments, unsaved_files=list(texts.items()))
    assembler = _with_registers(unit.diagnostics, texts)
    if assembler:  # inline assembler is refused where a codelet comes to it, and else does not matter
        unit = clang().index.parse(file.name, arguments, unsaved_files=list({**texts, **assembler}.items()))
    errors = [one for one in unit.diagnostics if one.severity >= 3 or one.spelling == _NO_RETURN or _PRIVATE.search(one.spelling)]
    if errors:
        searched = [directory, *_directories(flags)]
        count = file.text.count("\n") + 1 if addition else math.inf
        raise CodeletCompileError("\n".join(_shown(one, file, searched, count) for one in errors))
    included = {str(one.include.name) for one in unit.get_includes()}
    return TranslationUnit(file, unit.cursor, tuple(sorted(name for name in included if not name.startswith(str(HEADERS)))))


def _directories(flags: Sequence[str]) -> list[str]:
    """The directories of headers among flags, with a word for those that are not there."""
    found = []
    for flag, value in zip(flags, [*flags[1:], ""], strict=True):
        for name in ("-isystem", "-I"):
            if flag.startswith(name):
                found.append(flag.removeprefix(name) or value)
                break
    return [one if Path(one).is_dir() else f"{one} (no such directory)" for one in found]


def _with_registers(diagnostics: Any, texts: Mapping[str, str]) -> dict[str, str]:
    """The files whose assembler names registers of the machine, which the parse's target has not, with a name that it has."""
    found = {}
    for one in diagnostics:
        if one.spelling.startswith("unknown register name '$") and one.location.file is not None:
            name = one.location.file.name
            text = texts[name] if name in texts else "\n".join(_lines(name))
            found[name] = re.sub(r'"\$[am]\d+(?::\d+)?"', lambda match: '"memory"'.ljust(len(match[0])), text)
    return found


def _shown(diagnostic: Any, file: CppFile, searched: list[str], count: float) -> str:
    """``FILE:LINE:COLUMN: text``, with the line and a caret below."""
    place = diagnostic.location
    name = place.file.name if place.file is not None else file.name
    text = str(diagnostic.spelling)
    absent = _NOT_THERE.search(text)
    if absent:
        text += f": the device has no {absent[1]}: {_INSTEAD[absent[1]]}"
    elif text.endswith("file not found"):
        text += f": there are pypoplar's own headers, and of others those in {', '.join(searched)}; give the directory by -Idir"
    lines = file.text.splitlines() if name == file.name else _lines(name)
    line = lines[place.line - 1].expandtabs(1) if 0 < place.line <= len(lines) else ""
    private = _PRIVATE.search(text) or ("constant expression" in text and _PRIVATE.search(line))
    if private:
        text += f": {private[0]} is a number of the machine that is not public, and has no value here"
    if place.file is None:
        return f"compileFlags: {text}"
    if name == file.name and place.line > count:  # in what a vertex's name has become
        return text
    shown = f"{name}:{place.line}:{place.column}: {text}"
    if line:
        shown += f"\n    {line.strip()}\n    {' ' * (place.column - 1 - (len(line) - len(line.lstrip())))}^"
    return shown


def _lines(name: str) -> list[str]:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
