"""Tables of the ledger and of the published releases, as SQL.

Promise: no table has sequences or row numbers of SQLite's choice, so nothing counts what was once
there; numbers are 64-bit integers or the statement fails. A change here is a new format number.
"""

from __future__ import annotations

LEDGER_APPLICATION = 0x72647031
LEDGER_FORMAT = 3
RELEASES_APPLICATION = 0x72647032
RELEASES_FORMAT = 1

COMMON = """
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE totals(
    release TEXT NOT NULL, key BLOB NOT NULL,
    value INTEGER NOT NULL CHECK (typeof(value) = 'integer'),
    PRIMARY KEY (release, key)
) WITHOUT ROWID;
CREATE TABLE pending(round INTEGER NOT NULL PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE forgets(
    kind TEXT NOT NULL, space NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, space, value)
) WITHOUT ROWID;
CREATE TABLE remembered(hash BLOB NOT NULL PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sources(digest TEXT NOT NULL PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
"""
# A missing person (queue without ids) or namespace (forgets) is x'', which no text equals: keys
# hold no NULL.

WITH_IDS = """
CREATE TABLE queue(
    place INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL, latest INTEGER NOT NULL,
    ends INTEGER NOT NULL, content BLOB NOT NULL
);
CREATE TABLE packs(
    stamp INTEGER NOT NULL, space TEXT NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (stamp, space, id)
) WITHOUT ROWID;
CREATE TABLE names(
    space TEXT NOT NULL, id TEXT NOT NULL, stamp INTEGER NOT NULL, PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX names_id ON names(id) WHERE space > '';
"""
# The queue's place is round and chunk in one number, which the caller gives: where a key is that
# number SQLite never reads contents to compare keys, which in a table WITHOUT ROWID it does.
# Contents in packs by stamp, each named by its first life, so that a round appends whole columns,
# whatever the ids, and a window reads those that leave it in one piece; random are only the names.
# No index on persons: each round would touch all of it, and whoever forgets a person rewrites the
# file anyway.

WITHOUT_IDS = """
CREATE TABLE queue(
    round INTEGER NOT NULL, space TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
    rank INTEGER NOT NULL, payload BLOB NOT NULL, stamp INTEGER NOT NULL, person NOT NULL,
    op INTEGER NOT NULL, n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n > 0),
    PRIMARY KEY (round, space, id, at, rank, payload, stamp, person)
) WITHOUT ROWID;
CREATE TABLE multiset(
    stamp INTEGER NOT NULL, payload BLOB NOT NULL, person TEXT,
    n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n > 0), PRIMARY KEY (stamp, payload)
) WITHOUT ROWID;
"""

RELEASES = """
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds(round INTEGER NOT NULL PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE releases(
    round INTEGER NOT NULL, release TEXT NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (round, release)
) WITHOUT ROWID;
"""

_REFUSED = "BEGIN SELECT RAISE(ABORT, 'append only'); END"
# INSERT OR REPLACE deletes without firing a delete trigger, hence conditions on insertion too.
_REFUSED_ROWS = {
    "meta": "EXISTS (SELECT 1 FROM meta WHERE key = NEW.key)",
    "rounds": "EXISTS (SELECT 1 FROM rounds WHERE round >= NEW.round)",
    "releases": "EXISTS (SELECT 1 FROM rounds WHERE round >= NEW.round) OR EXISTS "
    "(SELECT 1 FROM releases WHERE round = NEW.round AND release = NEW.release)",
}
APPEND_ONLY = tuple(
    f"CREATE TRIGGER {table}_{change} BEFORE {change} ON {table} WHEN {when} {_REFUSED}"
    for table, again in _REFUSED_ROWS.items()
    for change, when in (("UPDATE", "TRUE"), ("DELETE", "TRUE"), ("INSERT", again))
)
"""What makes the published releases refuse every change but a new round."""


def statements(script: str) -> list[str]:
    """The statements of a script of tables and indexes, one by one."""
    return [part.strip() for part in script.split(";") if part.strip()]
