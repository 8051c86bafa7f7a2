"""What stands on the command line of `poprun`, and in its configuration files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from pypoplar.errors import InvalidOption
from pypoplar.files import check_regular
from pypoplar.poprun.poprun_options import BY_KEY, BY_NAME, FALSE, FLAG, OPTIONS, SWITCHES, TEXT, TRUE, PoprunOption, Value
from pypoplar.spelling import nearest_or_all

VERSION = 1  # of configuration files


@frozen
class Arguments:
    """Options by key, those that were given, and the program with its arguments."""

    values: Mapping[str, Value]
    given: frozenset[str]
    program: tuple[str, ...]
    verbosity: int = 0
    asks: str = ""  # "help" or "version"

    def text(self, key: str) -> str:
        """A text, empty where there is none."""
        value = self.values[key]
        return "" if value is None else str(value)

    def number(self, key: str) -> int:
        """A number that has a default."""
        value = self.values[key]
        assert isinstance(value, int)
        return value

    def flag(self, key: str) -> bool:
        """Whether a flag is set."""
        return bool(self.values[key])


def parse(words: Sequence[str]) -> Arguments:
    """Read a command line; `InvalidOption` for what is none, with the nearest name."""
    left, given, verbosity = list(words), dict[str, Value](), 0
    while left and left[0].startswith("-"):
        word = left.pop(0)
        if word == "--":
            break
        if word in ("-h", "--help", "--version"):
            return Arguments(_defaults(), frozenset(), (), asks="version" if word == "--version" else "help")
        if word in ("-v", "--verbose", "-vv", "--vv"):
            verbosity = max(verbosity + 1, word.count("v") if word in ("-vv", "--vv") else 1)
            continue
        name, equals, text = word.partition("=")
        option = BY_NAME.get(name)
        if option is None:
            raise InvalidOption(f"poprun has no option {name!r}{nearest_or_all(name, [*BY_NAME, *SWITCHES])}")
        if not equals and option.kind == FLAG and not (left and left[0].lower() in (*TRUE, *FALSE)):
            text = "yes"
        elif not equals:
            if not left:
                raise InvalidOption(f"{name} needs a value: {name} {option.kind}")
            text = left.pop(0)
        if option.key in given:
            raise InvalidOption(f"{option.name} is given twice")
        given[option.key] = option.read(text)
    imported = {} if given.get("import_config") is None else read_config(Path(str(given["import_config"])))
    values = {**_defaults(), **imported, **given}
    return Arguments(values, frozenset((*imported, *given)), tuple(left), verbosity)


def _defaults() -> dict[str, Value]:
    return {option.key: option.default for option in OPTIONS}


# Configuration files

NOT_KEPT = ("export_config", "import_config", "overwrite_config")


def write_config(arguments: Arguments, path: Path) -> None:
    """Write the options that were given to a file, which is no other's unless it may be overwritten."""
    if path.exists() and not arguments.flag("overwrite_config"):
        raise InvalidOption(f"--export-config: {path} is there already; --overwrite-config yes writes over it")
    kept = {key: arguments.values[key] for key in sorted(arguments.given) if key not in NOT_KEPT}
    try:
        path.write_text(json.dumps({"poprun config version": VERSION, "options": kept}, indent=2) + "\n", encoding="utf-8")
    except OSError as problem:
        raise InvalidOption(f"--export-config: {path} cannot be written: {problem.strerror}") from None


def read_config(path: Path) -> dict[str, Value]:
    """The options of a file that `write_config` wrote."""
    what = f"--import-config: {path}"
    try:
        check_regular(path)
        tree = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidOption(f"{what} cannot be read: {problem.strerror or problem}") from None
    except (ValueError, RecursionError) as problem:
        raise InvalidOption(f"{what} is no configuration of poprun: {problem}") from None
    version = tree.get("poprun config version") if isinstance(tree, dict) else None
    if version != VERSION or isinstance(version, bool):
        raise InvalidOption(f"{what} is a configuration of version {version}, this poprun reads version {VERSION}: export it again")
    options = tree.get("options")
    if not isinstance(options, dict):
        raise InvalidOption(f"{what} has no table of options")
    read: dict[str, Value] = {}
    for key, value in options.items():
        if key not in BY_KEY or key in NOT_KEPT:
            raise InvalidOption(f"{what}: poprun has no option {key!r}{nearest_or_all(key, BY_KEY)}")
        read[key] = _kept_value(BY_KEY[key], value, what)
    return read


def _kept_value(option: PoprunOption, value: object, what: str) -> Value:
    """A value as JSON has it: numbers are numbers, and only flags are true or false."""
    if value is None and option.default is None:
        return None
    kinds = {FLAG: bool, TEXT: str}
    if type(value) is not kinds.get(option.kind, int):
        raise InvalidOption(f"{what}: {option.key} is {option.kind}, got {json.dumps(value)}")
    return option.read(("yes" if value else "no") if isinstance(value, bool) else str(value))
