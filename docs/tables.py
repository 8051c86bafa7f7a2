"""Write what is a table of the code: ``python docs/tables.py`` makes the pages in `PAGES` anew."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

from pypoplar import errors, options
from pypoplar.poputil.poplibs_names import declarations
from pypoplar.report.file import sqlite_file as profile_file
from pypoplar.report.page.page_views import COMPARISON, REPORT, PageKind

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import error_examples  # noqa: E402 (they lie beside this file)
import gallery_pages  # noqa: E402
import help_texts  # noqa: E402
import library_calls  # noqa: E402
import poplibs_table  # noqa: E402
import tutorial_pages  # noqa: E402


def first_sentence(text: str | None) -> str:
    """The first line of a docstring, without the dot."""
    assert text
    return text.strip().splitlines()[0].rstrip(".")


def cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)


def show_default(option: options.Option) -> str:
    return "" if option.default is None else f"`{options.option_text(option.default)}`"


def show_allowed(option: options.Option) -> str:
    names = option.kind.allowed.split(" or ")
    return option.kind.allowed if len(names) < 10 else f"{names[0]}, or a number from 0 to 64"


def option_rows(effect: bool) -> list[list[object]]:
    return [
        [f"`{option.name}`", show_allowed(option), *([show_default(option)] if effect else []), option.meaning]
        for option in options.OPTIONS
        if bool(option.attribute) is effect
    ]


def options_page() -> str:
    return f"""# Engine options

<!-- Made by docs/tables.py from pypoplar/options.py; a test compares them. -->

Options are given to the Engine as a dict: `Engine(graph, program, {{"pypoplar.threads": "1"}})`. Values are strings, as in
Poplar, or Python's own bools and integers. An unknown name or an ill-formed value raises `InvalidOption` with the nearest
name or with what is allowed. The environment variable `{options.ENVIRONMENT}`, a JSON object, overrides the program:

    {options.ENVIRONMENT}='{{"pypoplar.races": "elements"}}' python program.py

Whether codelets run natively or interpreted is not an option but an argument: `Engine(..., mode="interpret")`. The reference has
[the classes behind them](api/options.md); options of a call are with [the calls of the libraries](library-calls.md), and those of
PyTorch's models with [poptorch](pytorch.md).

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
    plain = [base for base in error.__mro__ if base.__module__ == "builtins" and base not in (Exception, BaseException, object)]
    nearest = [base for base in plain if not any(other is not base and issubclass(other, base) for other in plain)]
    return ", ".join(f"`{base.__name__}`" for base in nearest)


def errors_page() -> str:
    rows: list[list[object]] = [
        [
            f"[`{error.__name__}`](#{error.__name__.lower()})"
            if error.__name__ in error_examples.EXAMPLES
            else f"`{error.__name__}`",
            ", ".join(f"`{base.__name__}`" for base in error.__bases__ if issubclass(base, errors.PoplarError)),
            builtin_of(error),
            first_sentence(error.__doc__),
        ]
        for error in errors.TABLE
    ]
    return f"""# Errors

<!-- Made by docs/tables.py from pypoplar/errors.py; a test compares them. -->

Every error that pypoplar raises on purpose is a `PoplarError`, and also the builtin exception that a Python user would
catch. All can be imported from `pypoplar`. Names are Poplar's in CapWords; a name that would hide a builtin is prefixed. A
message names your objects, the file and line where they were made, what was expected and what was found.

What the arguments alone decide raises at the call. Connections, tile mappings, races and tile memory raise when the Engine is
built. An error in a codelet stops its vertex, the step finishes, and `run` raises for the first step and the lowest vertex;
the Engine stays usable.

A traceback shows your lines, and below each at most one of pypoplar's. All are shown if the environment variable
`PYPOPLAR_FULL_TRACEBACK` is set, and for an error that is not a `PoplarError` and not from your code: a fault of pypoplar's.

{table(["error", "is a", "and a", "when"], rows)}

Their attributes are [in the reference](api/errors.md). Models of PyTorch have further ones,
[in theirs](api/poptorch.md#messages-and-errors).

## What raises them

Each program below goes on where this one ends, and its last step fails with the message that follows. Line 22 is that of `vertex`.

```py
{error_examples.BEGINNING}```

{error_examples.sections()}
"""


TABLE = re.compile(r"CREATE TABLE (\w+) \(  -- (.*)\n((?:    .*\n)*)\)")
VIEW = re.compile(r"CREATE VIEW (\w+) AS  -- (.*)\n")
COLUMN = re.compile(r"    (\w+) (TEXT|INTEGER|REAL)([^,]*?),?  -- (.*)")


def kind(type: str, constraints: str) -> str:
    """A column's type, and whether it is a key, refers to another table, or may be NULL."""
    if reference := re.search(r"REFERENCES (\w+)", constraints):
        type += f", of `{reference[1]}`"
    if "PRIMARY KEY" in constraints:
        return f"{type}, key"
    return type if "NOT NULL" in constraints else f"{type} or NULL"


def schema_tables(schema: str) -> str:
    """Every table of the profile file with its columns."""
    parts = []
    for name, meaning, body in TABLE.findall(schema):
        rows: list[list[object]] = [
            [f"`{column}`", kind(type, constraints), text] for column, type, constraints, text in COLUMN.findall(body)
        ]
        parts.append(f"### {name}\n\n{meaning}\n\n{table(['column', 'type', 'meaning'], rows)}")
    return "\n\n".join(parts)


QUERIES = {
    "The ten steps that cost the most": """
SELECT name, type, executions, cycles, ROUND(100.0 * cycles / (SELECT SUM(cycles) FROM step_total), 1) AS percent
FROM step_total ORDER BY cycles DESC LIMIT 10;""",
    "The lines of your program that cost the most": """
SELECT place, COUNT(*) AS steps, SUM(cycles) AS cycles
FROM step_total JOIN step USING (step) JOIN made_at ON kind = 'program' AND number = program
GROUP BY place ORDER BY cycles DESC LIMIT 10;""",
    "Cycles of each run": """
SELECT run, name, runs, cycles, cycles / clock_frequency AS seconds FROM run_total, target;""",
    "Where the cycles go": """
SELECT SUM(sync_cycles) AS sync, SUM(exchange_cycles) AS exchange, SUM(copy_cycles) AS copies,
    SUM(global_exchange_cycles) AS between_ipus, SUM(host_exchange_cycles) AS host, SUM(compute_cycles) AS compute
FROM step_total;""",
    "The lines of codelets whose vertices were charged the most worker slots for them, with what their code takes as compiled": """
SELECT vertex_type, line, TRIM(text) AS text, slots_charged, slots_compiled, bound
FROM line_cost ORDER BY slots_charged DESC LIMIT 10;""",
    "The slowest vertex of each compute set": """
SELECT compute_set, vertex_type, tile, cycles, GROUP_CONCAT(name || ' ' || elements, ', ') AS sizes
FROM longest_vertex LEFT JOIN longest_vertex_field USING (longest_vertex) GROUP BY longest_vertex ORDER BY cycles DESC;""",
    "The tiles that compute for the longest": """
SELECT tile, cycles FROM tile_total ORDER BY cycles DESC, tile LIMIT 10;""",
    "What is in memory, and the fullest tile": """
SELECT name, bytes FROM category_total ORDER BY bytes DESC;
SELECT tile, MAX(including_gaps) AS bytes, bytes_per_tile FROM tile_total_memory, target;""",
    "The largest variables of a tile": """
SELECT name, bytes FROM variable_tile JOIN variable USING (variable) WHERE tile = 0 ORDER BY bytes DESC LIMIT 10;""",
    "What lies where in a tile's memory, and when it lives": """
SELECT offset, offset + span AS end, name, always_live, first_step, end_step
FROM variable_tile JOIN variable USING (variable) LEFT JOIN variable_life USING (variable) WHERE tile = 0 ORDER BY offset;""",
    "What lives at the step with the most memory": """
SELECT variable.name, first_step, end_step, SUM(bytes) AS bytes
FROM variable JOIN variable_life USING (variable) JOIN variable_tile USING (variable)
WHERE (SELECT step FROM liveness ORDER BY not_always_live DESC LIMIT 1) BETWEEN first_step AND end_step - 1
GROUP BY variable ORDER BY bytes DESC;""",
    "Who sends the most to whom": """
SELECT exchange.name, source, destination, bytes
FROM exchange_message JOIN exchange USING (message_list) ORDER BY bytes DESC LIMIT 10;""",
    "How the tiles of each step are balanced: mean over maximum": """
WITH balances AS (
    SELECT tile_profile, ROUND(1.0 * SUM(cycles) / MAX(cycles) / execution.tiles, 3) AS balance
    FROM tile_profile_tile, execution GROUP BY tile_profile HAVING MAX(cycles) > 0
)
SELECT step.name, balance FROM run_step JOIN step USING (step) JOIN balances USING (tile_profile)
WHERE run = 0 ORDER BY balance;""",
    "The program's tree, with shared parts written out": """
WITH RECURSIVE tree (path, depth, program) AS (
    SELECT printf('%04d', entry), 0, program FROM entry
    UNION ALL
    SELECT path || printf('/%04d', position), depth + 1, child FROM program_child JOIN tree ON parent = tree.program
)
SELECT printf('%.*c', 2 * depth + 1, ' ') || type || ' ' || name || ' ' || detail AS program
FROM tree JOIN program USING (program) ORDER BY path;""",
}


def profile_page() -> str:
    schema = profile_file.SCHEMA.read_text(encoding="utf-8")
    views: list[list[object]] = [[f"`{name}`", meaning] for name, meaning in VIEW.findall(schema)]
    *first, last = map(str, profile_file.UPGRADES)
    older = f"{', '.join(first)} and {last}"
    queries = "\n\n".join(f"{title}:\n\n```sql\n{query.strip()}\n```" for title, query in QUERIES.items())
    return f"""# The profile file

<!-- Made by docs/tables.py from pypoplar/report/file/profile_schema.sql; a test compares them. -->

A profile, `{profile_file.NAME}`, is an SQLite database: one file with everything that a report has. An Engine with the option
`autoReport.all` writes it, and so does `pva.save_report(engine.getReport(), path)`, after `from pypoplar import pva`.
`pva.openReport(path)` reads it back as the same report, in any process. `pypoplar summary`, `pypoplar report` and
`pypoplar trace` show it, and every SQL tool can query it: `sqlite3 profile.pop 'SELECT * FROM step_total'`.

All values are plain integers, numbers and texts. Nothing is pickled, and nothing in a file is executed. Cycles are tile
cycles, but those of vertex types are worker slots: cycles of one worker thread, which takes turns with the others of its tile;
a second has `target.clock_frequency` of them. Sizes are bytes. Tiles are numbered over all IPUs. A table with rows by tile has no
row for a tile that has nothing. `PRAGMA application_id` is {profile_file.APPLICATION} ("PoPr"), and `PRAGMA user_version` is the
version of the tables, {profile_file.PROFILE_VERSION}. Files of version {older} are read
too, and what they lack is absent. A file of another version, of another application, damaged, or with numbers that refer to
nothing is refused with `FileLoadError`. Tables, views and indices that you add do no harm.

## Queries to try

{queries}

## Views

{table(["view", "what it has"], views)}

## Tables

{schema_tables(schema)}
"""


def between(text: str, mark: str, content: str) -> str:
    """Prose with what stands between ``<!-- MARK -->`` and ``<!-- end of MARK -->`` made anew."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{content}\n\n{end}{rest.partition(end)[2]}"


def view_table(kind: PageKind[Any]) -> str:
    return table(["view", "what it shows"], [[kind.title(view), view.shows] for view in kind.views])


def report_page() -> str:
    """The document of pages with its tables of views, which are those of pypoplar/report/page/page_views.py."""
    prose = (HERE / "report.md").read_text(encoding="utf-8")
    return between(between(prose, "views", view_table(REPORT)), "views of a comparison", view_table(COMPARISON))


def poplibs_rows(module: str) -> str:
    """The tables of one module, a header each."""
    own = [declaration for declaration in declarations() if declaration.module == module]
    parts = []
    for header, group in groupby(own, lambda declaration: declaration.header):
        rows: list[list[object]] = [
            [f"{'' if line.kind in ('function', 'method') else line.kind + ' '}`{line}`", poplibs_table.status(line)]
            for line in group
        ]
        parts.append(f"### {header}\n\n{table(['in PopLibs', 'in pypoplar'], rows)}")
    if extra := poplibs_table.beyond(module):
        parts.append(f"Beyond PopLibs' headers: {', '.join(f'`{name}`' for name in extra)}.")
    return "\n\n".join(parts)


def poplibs_page() -> str:
    counts = {
        module: Counter(poplibs_table.status(declaration) for declaration in declarations() if declaration.module == module)
        for module in poplibs_table.modules()
    }
    overview: list[list[object]] = [
        [f"[`{module}`](#{module.replace('.', '')})", sum(count.values()), count[poplibs_table.THERE], count[poplibs_table.ABSENT]]
        for module, count in counts.items()
    ]
    modules = "\n\n".join(f"## {module}\n\n{poplibs_rows(module)}" for module in counts)
    return f"""# PopLibs' functions

<!-- Made by docs/tables.py from pypoplar/poputil/poplibs_names.toml and the libraries; a test compares them. -->

What the public headers of PopLibs declare (graphcore/poplibs, version of August 2023), overload by overload, and what of it
pypoplar has. Names, order of arguments and defaults are PopLibs'; how C++ is bound to Python stands in
[the libraries](libraries.md#binding). An argument with an ampersand is a C++ reference or pointer that the call writes: in Python
such tensors follow the result. What is "not yet" there raises `MissingMember`, a `MissingFeature`.

{table(["module", "declarations", "there", "not yet"], overview)}

{modules}
"""


def onnx_page() -> str:
    import onnx_operators

    return onnx_operators.page()


PAGES = {
    "docs/command-line.md": help_texts.page,
    "docs/library-calls.md": library_calls.page,
    "docs/poplibs.md": poplibs_page,
    "docs/options.md": options_page,
    "docs/errors.md": errors_page,
    "docs/profile-file.md": profile_page,
    "docs/report.md": report_page,
    **tutorial_pages.pages(),
    **gallery_pages.pages(),
    **({"docs/onnx-operators.md": onnx_page} if all(importlib.util.find_spec(name) for name in ("onnx", "torch")) else {}),
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE.parent / name).write_text(page(), encoding="utf-8")
