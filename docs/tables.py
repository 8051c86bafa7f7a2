"""Write what is a table of the code: ``python docs/tables.py`` makes options.md, errors.md and the README's options anew."""

from __future__ import annotations

from pathlib import Path

from pypoplar import errors, options

HERE = Path(__file__).parent


def first_sentence(text: str | None) -> str:
    """The first line of a docstring, without the dot."""
    assert text
    return text.strip().splitlines()[0].rstrip(".")


def cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines)


def show_default(option: options.Option) -> str:
    value = options.default_of(option)
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def show_allowed(option: options.Option) -> str:
    names = option.kind.allowed.split(" or ")
    return option.kind.allowed if len(names) < 10 else f"{names[0]}, or a number from 0 to 64"


def option_rows(effect: bool) -> list[list[object]]:
    return [
        [f"`{one.name}`", show_allowed(one), *([show_default(one)] if effect else []), one.meaning]
        for one in options.OPTIONS
        if bool(one.attribute) is effect
    ]


def options_page() -> str:
    return f"""# Engine options

<!-- Made by docs/tables.py from pypoplar/options.py; a test compares them. -->

Options are given to the Engine as a dict: `Engine(graph, program, {{"pypoplar.threads": "1"}})`. Values are strings, as in
Poplar, or Python's own bools and integers. An unknown name or an ill-formed value raises `InvalidOption` with the nearest
name or with what is allowed. The environment variable `{options.ENVIRONMENT}`, a JSON object, overrides the program:

    {options.ENVIRONMENT}='{{"pypoplar.races": "elements"}}' python program.py

Whether codelets run natively or interpreted is not an option but an argument: `Engine(..., mode="interpret")`.

## Options with an effect

{table(["option", "value", "default", "what it does"], option_rows(True))}

## Options that are accepted

These are Poplar's and are checked for their form, so that programs run unchanged.

{table(["option", "value", "what becomes of it"], option_rows(False))}

## Old names

{table(["old name", "refused with a hint to"], [[f"`{old}`", f"`{new}`"] for old, new in options.RENAMED.items()])}
"""


def builtin_of(error: type[errors.PoplarError]) -> str:
    """The builtin exceptions that also catch it, nearest first."""
    plain = [one for one in error.__mro__ if one.__module__ == "builtins" and one not in (Exception, BaseException, object)]
    nearest = [one for one in plain if not any(other is not one and issubclass(other, one) for other in plain)]
    return ", ".join(f"`{one.__name__}`" for one in nearest)


def errors_page() -> str:
    rows: list[list[object]] = [
        [
            f"`{one.__name__}`",
            ", ".join(f"`{base.__name__}`" for base in one.__bases__ if issubclass(base, errors.PoplarError)),
            builtin_of(one),
            first_sentence(one.__doc__),
        ]
        for one in errors.TABLE
    ]
    return f"""# Errors

<!-- Made by docs/tables.py from pypoplar/errors.py; a test compares them. -->

Every error that pypoplar raises on purpose is a `PoplarError`, and also the builtin exception that a Python user would
catch. All can be imported from `pypoplar`. Names are Poplar's in CapWords; a name that would hide a builtin is prefixed. A
message names your objects, the file and line where they were made, what was expected and what was found.

What the arguments alone decide raises at the call. Connections, tile mappings, races and tile memory raise when the Engine is
built. An error in a codelet stops its vertex, the step finishes, and `run` raises for the first step and the lowest vertex;
the Engine stays usable.

{table(["error", "is a", "and a", "when"], rows)}
"""


BEGIN, END = "<!-- options -->\n", "<!-- end of options -->\n"


def readme() -> str:
    """The README with its table of options made anew."""
    before, _, rest = (HERE.parent / "README.md").read_text(encoding="utf-8").partition(BEGIN)
    rows: list[list[object]] = [[f"`{one.name}`", show_default(one), one.meaning] for one in options.OPTIONS if one.attribute]
    return f"{before}{BEGIN}\n{table(['option', 'default', 'what it does'], rows)}\n\n{END}{rest.partition(END)[2]}"


PAGES = {"docs/options.md": options_page, "docs/errors.md": errors_page, "README.md": readme}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE.parent / name).write_text(page(), encoding="utf-8")
