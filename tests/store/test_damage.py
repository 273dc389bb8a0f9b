"""A damaged file works or raises a `StoreError` that names it, never anything else."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.errors import InputError, StoreError
from segue.store.base import MAX_TIME
from segue.store.sqlite import SqliteStore
from tests.store.damage import PAGE, UNUSABLE, create_store, overwrite, use_store


class Sample(NamedTuple):
    """A store and its id, and the place for damaged copies."""

    whole: Path
    id: str
    path: Path

    def copy(self) -> None:
        for file in self.path.parent.iterdir():
            file.unlink()
        shutil.copy(self.whole, self.path)

    def check(self) -> str:
        """Use the copy; return the cause of the error, or an empty string."""
        caught: StoreError | InputError | None = None
        try:
            use_store(self.path, self.id)
        except (StoreError, InputError) as error:
            caught = error
        if isinstance(caught, InputError):
            # The row with the id is damaged: there is no such conversation.
            assert caught.path == "id"
        if not isinstance(caught, StoreError):
            return ""
        assert str(self.path) in str(caught)
        return caught.cause


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Generator[Sample]:
    folder = tmp_path_factory.mktemp("damage")
    if os.access("/dev/shm", os.W_OK):
        folder = Path("/dev/shm") / f"segue-damage-{os.getpid()}"
        folder.mkdir()
    (folder / "copy").mkdir()
    yield Sample(folder / "whole.db", create_store(folder / "whole.db"), folder / "copy" / "history.db")
    shutil.rmtree(folder)


FILLS = {
    "zeros": lambda count, _: bytes(count),
    "ones": lambda count, _: b"\xff" * count,
    "noise": lambda count, seed: seed.randbytes(count),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("page", [0, 1])
def test_each_window_of_the_first_pages(sample: Sample, page: int, fill: str) -> None:
    seed = random.Random(page)
    causes: set[str] = set()
    for at in [*range(0, 112, 16), *range(112 + 16 * len(fill), PAGE, 16 * 23)]:
        sample.copy()
        overwrite(sample.path, page * PAGE + at, FILLS[fill](16, seed))
        causes.add(sample.check())
    assert "corrupt" in causes


@given(st.data())
def test_random_bytes(sample: Sample, data: st.DataObject) -> None:
    sample.copy()
    size = sample.path.stat().st_size
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, 2 * PAGE) | st.integers(0, size - 1))
        overwrite(sample.path, at, data.draw(st.binary(min_size=1, max_size=40))[: size - at])
    sample.check()


def test_each_truncation(sample: Sample) -> None:
    size = sample.whole.stat().st_size
    pages = range(PAGE, size, 3 * PAGE)
    for length in [0, 1, 15, 16, 99, 100, 101, 512, *(page + more for page in pages for more in (-1, 0, 1))]:
        sample.copy()
        os.truncate(sample.path, length)
        assert sample.check() in (("",) if length == 0 else ("corrupt", "foreign")), length


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_damaged_log(sample: Sample, tmp_path: Path, suffix: str) -> None:
    """The changes in a damaged write-ahead log are lost from the damage on; the rest is read."""
    with SqliteStore(tmp_path / "history.db") as store:
        id = store.create("a title")
        copies = [Path(shutil.copy(file, tmp_path / f"copy-{file.name}")) for file in tmp_path.iterdir()]
    seed = random.Random(suffix)
    for _ in range(12):
        sample.copy()
        for copy in copies:
            shutil.copy(copy, sample.path.parent / copy.name.removeprefix("copy-"))
        log = sample.path.with_name(f"history.db{suffix}")
        overwrite(log, seed.randrange(log.stat().st_size - 64), seed.randbytes(64))
        Sample(sample.whole, id, sample.path).check()


TYPED = {
    "conversations": {"title": ["x'ff00'"], "created": ["'x'", -1, MAX_TIME + 1], "updated": ["x'00'"], "seq": ["'x'"]},
    "leases": {"owner": ["x'ff'"], "since": [-1], "expires": ["'x'", MAX_TIME + 1]},
}


def test_values_of_another_type(sample: Sample) -> None:
    """SQLite stores any type in any column, and each integer is valid to it."""
    for table, columns in TYPED.items():
        for column, value in ((column, value) for column, values in columns.items() for value in values):
            sample.copy()
            with SqliteStore(sample.path) as store:
                store.acquire(sample.id, "another process", 60)
                with store._write_session() as session:
                    session.run(f"UPDATE @{table} SET {column} = {value}")
            assert sample.check() == "corrupt", (table, column, value)


@pytest.mark.parametrize("case", UNUSABLE)
def test_unusable_file_is_named_and_unchanged(tmp_path: Path, case: str) -> None:
    path = tmp_path / "file"
    UNUSABLE[case](path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert caught.value.cause in ("corrupt", "foreign", "newer")
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before
