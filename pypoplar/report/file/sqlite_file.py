"""Saves reports in SQLite files, and loads them: ``profile.pop``.

Any SQL tool can read such a file: `SCHEMA`, ``profile_schema.sql``, says what each table and column holds, and so does
``docs/profile-file.md``. Nothing in a file is executed, and `load_report` checks every number before it is used.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from pypoplar.errors import FileLoadError
from pypoplar.files import check_regular, written_whole
from pypoplar.report.file.profile_reader import ProfileReader
from pypoplar.report.file.profile_writer import ProfileWriter
from pypoplar.report.report import PROFILE_VERSION, Report
from pypoplar.tracebacks import public

APPLICATION = int.from_bytes(b"PoPr")
"""``PRAGMA application_id`` of a profile file; ``PRAGMA user_version`` is `PROFILE_VERSION`."""
NAME = "profile.pop"
"""The name that a profile has in its directory."""
FAST = ("journal_mode = OFF", "synchronous = OFF")  # a file that is not whole is thrown away
SCHEMA = Path(__file__).with_name("profile_schema.sql")
UPGRADES = {version: Path(__file__).with_name(f"profile_upgrade_{version}.sql") for version in (3, 4, 5, 6, 7, 8)}
"""By version of older files that can be read: what the next version has besides, as views and tables of the connection alone."""

Place = str | os.PathLike[str]


@public
def save_report(report: Report, path: Place) -> None:
    """Write a report to one SQLite file, which `openReport` and every SQL tool read. Equal reports give equal files.

    A file at `path` is replaced as a whole, or not at all if the disk is full or the process ends halfway.

    Parameters
    ----------
    report:
        What `Engine.getReport` or `openReport` gave.
    path:
        The file, such as ``profile.pop``.

    Raises
    ------
    OSError
        If the file cannot be written, or if it is there and no regular file.
    """
    try:
        with written_whole(path) as part, closing(sqlite3.connect(part, isolation_level=None)) as database:
            for pragma in (*FAST, f"application_id = {APPLICATION}", f"user_version = {PROFILE_VERSION}"):
                database.execute(f"PRAGMA {pragma}")
            database.executescript(SCHEMA.read_text(encoding="utf-8"))
            database.execute("BEGIN")
            ProfileWriter(database, report).write()
            database.execute("COMMIT")
    except sqlite3.OperationalError as problem:  # a full disk
        raise OSError(f"{os.path.realpath(path)}: cannot be written: {problem}") from problem


def load_report(path: Place) -> Report:
    """The report that `save_report` wrote to `path`, or to ``profile.pop`` in the directory `path`.

    Raises `FileLoadError` if there is no such file, if it is not a profile, of a later version, or damaged.
    """
    place = Path(path)
    file = place / NAME if place.is_dir() else place
    try:
        with _opened(file) as database:
            return ProfileReader(database).report()
    except FileLoadError as problem:
        raise FileLoadError(f"{file}: {problem}") from problem.__cause__
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        raise FileLoadError(f"{file}: damaged: {problem}") from problem


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The file as a database that can only be read, once it is known to be a profile."""
    try:
        check_regular(file)
        with file.open("rb") as content:
            head = content.read(16)
    except OSError as problem:
        raise FileLoadError(f"cannot be read: {problem.strerror or problem}") from problem
    if head != b"SQLite format 3\0":
        raise FileLoadError("not a profile: it is not an SQLite file")
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        _check(database)
        database.execute("BEGIN")  # all of it as it is now, whoever writes meanwhile
        yield database


def _check(database: sqlite3.Connection) -> None:
    """Raise `FileLoadError` unless the database has our mark, a version that we read and its tables, and its pages hang together.

    What an older version lacks is laid over its tables.
    """

    def value(pragma: str) -> object:
        return database.execute(f"PRAGMA {pragma}").fetchone()[0]

    if value("application_id") != APPLICATION:
        raise FileLoadError("not a profile: it is an SQLite file of another application")
    version = value("user_version")
    if not isinstance(version, int) or version not in (*UPGRADES, PROFILE_VERSION):
        known = f"{', '.join(map(str, UPGRADES))} and {PROFILE_VERSION}"
        raise FileLoadError(f"a profile of version {version}: this pypoplar reads versions {known}; profile the program again")
    for older, upgrade in UPGRADES.items():
        if older >= version:
            database.executescript(upgrade.read_text(encoding="utf-8"))
    laid_over = {name for (name,) in database.execute("SELECT name FROM sqlite_temp_schema WHERE type = 'table'")}
    tables = dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    for name, sql in _tables().items():
        if name not in tables.keys() | laid_over:
            raise FileLoadError(f"damaged: it has no table {name}")
        if version == PROFILE_VERSION and _without_comments(tables[name]) != _without_comments(sql):
            raise FileLoadError(f"damaged: the table {name} has other columns than a profile's")
    broken = value("quick_check(1)")
    if broken != "ok":
        raise FileLoadError(f"damaged: {' '.join(str(broken).split())}")


def _without_comments(sql: str) -> str:
    """A definition of a table without what is said of its columns, which other releases may say in other words."""
    return re.sub(" *--.*", "", sql)


@cache
def _tables() -> dict[str, str]:
    """The tables of the schema, as SQLite keeps their definitions."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA.read_text(encoding="utf-8"))
        return dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
