"""The export of a long conversation: bounded memory, linear work, and never a half-written file."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import segue.store.sql
from segue.canonical.blocks import Message, Text, ToolCall
from segue.canonical.request import Request
from segue.cli.export import render_export
from segue.errors import StoreError
from segue.store.base import ConversationStore
from segue.store.events import CallCompleted, Event, MessageAdded, Switched
from segue.store.export import dump_events
from segue.store.segments import read_segments
from segue.store.sqlite import SqliteStore
from segue.view.html import render_html
from segue.view.markdown import render_markdown
from segue.view.page import Page
from tests.cli.store_cli import StoreCli

FORMATS = ("json", "md", "html")
SIZES = (400, 1200)
TEXT = "x" * 2000


def exchanges(count: int) -> Iterable[Event]:
    """Messages of 2 kB: user, call, result and answer in turn."""
    for number in range(count // 4):
        call = ToolCall("look", {"n": number}, id=f"hist_tool_{number:024}")
        yield MessageAdded(Message("human", (Text(TEXT),)))
        yield MessageAdded(Message("ai", (Text(TEXT), call), turn_key=f"turn-{2 * number + 1}"))
        yield CallCompleted(Message("tool", (call.respond(TEXT),), turn_key=f"turn-{2 * number + 1}"))
        yield MessageAdded(Message("ai", (Text(TEXT),), turn_key=f"turn-{2 * number + 2}"))
    yield Switched("anthropic", "claude-sonnet-4-5")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[int, SqliteStore]]:
    """A store for each size, with one conversation `long`."""
    folder = tmp_path_factory.mktemp("streaming")
    opened = {size: SqliteStore(folder / f"{size}.db") for size in SIZES}
    for size, store in opened.items():
        store.create(id="long", events=exchanges(size))
    yield opened
    for store in opened.values():
        store.close()


def export(store: ConversationStore, form: str) -> int:
    """Export without keeping the output; return its size."""
    chunks, _ = render_export(store, store.get("long"), form, None)
    return sum(map(len, chunks))


@contextmanager
def decoded_rows(monkeypatch: pytest.MonkeyPatch) -> Generator[list[int]]:
    """The number of rows decoded in the block, as a list of one."""
    counts, decode = [0], segue.store.sql.decode_row

    def count(*arguments):
        counts[0] += 1
        return decode(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(segue.store.sql, "decode_row", count)
        yield counts


READERS: dict[str, Callable[[SqliteStore], Iterable[object]]] = {
    "json": lambda store: dump_events(store.get("long"), store.events("long")),
    "pages": lambda store: read_segments(store, "long").segments(),
}


@pytest.fixture
def frozen_heap() -> Generator[None]:
    """All objects of other tests are exempt from garbage collection, so that it is fast."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("name", READERS)
def test_memory_does_not_grow_with_the_conversation(stores: dict[int, SqliteStore], name: str) -> None:
    peaks: list[int] = []
    for size in SIZES:
        chunks = iter(READERS[name](stores[size]))
        tracemalloc.start()
        try:
            for number, _ in enumerate(chunks):
                if name == "pages" or number % 100 == 0:
                    gc.collect()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < (SIZES[1] - SIZES[0]) * len(TEXT) / 4, peaks


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_pages_are_rendered_segment_by_segment(render: Callable[[Page], Iterator[str]]) -> None:
    taken: list[int] = []

    def segments() -> Iterator[list[Message]]:
        for number in range(9):
            taken.append(number)
            yield [Message("human", (Text(f"message {number}"),))]

    chunks = render(Page("T", (), Request(()), segments()))
    for number in range(9):
        assert any(f"message {number}" in chunk for chunk in chunks)
        assert taken == list(range(number + 1))


@pytest.mark.parametrize(("form", "reads"), [("json", 1), ("md", 2), ("html", 2), ("anthropic", 1)])
def test_each_event_is_decoded_a_fixed_number_of_times(
    stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch, form: str, reads: int
) -> None:
    with decoded_rows(monkeypatch) as counts:
        export(stores[SIZES[0]], form)
    assert counts == [reads * stores[SIZES[0]].get("long").seq]


def test_diag_decodes_each_event_twice_and_keeps_none(
    stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    from segue.cli.diagnosis import diagnose

    with decoded_rows(monkeypatch) as counts:
        assert diagnose(stores[SIZES[0]], "long", None, None, None).verdict
    assert counts == [2 * stores[SIZES[0]].get("long").seq]


@pytest.mark.parametrize("form", FORMATS)
def test_failed_export_leaves_the_old_file(
    store_cli: StoreCli, monkeypatch: pytest.MonkeyPatch, form: str, tmp_path: Path
) -> None:
    with store_cli.store() as store:
        store.create(id="long", events=exchanges(400))
        with store._write_session() as session:
            session.run("UPDATE @events SET data = 'x' WHERE seq = 390")
    out = tmp_path / "out"
    out.write_text("the old one", "utf-8")
    ended = store_cli("export", "long", "--format", form, "--out", str(out))
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert "event 390 of conversation 'long' is damaged" in ended.err
    assert out.read_text("utf-8") == "the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("form", ["json", "md", "html", "anthropic"])
def test_streamed_output_is_the_same_in_a_file_and_in_json(store_cli: StoreCli, tmp_path: Path, form: str) -> None:
    id = store_cli.add_conversation()
    printed = store_cli("export", id, "--format", form).out
    assert store_cli("export", id, "--format", form, "--out", str(tmp_path / "out")).code == 0
    assert (tmp_path / "out").read_text("utf-8").rstrip("\n") == printed.rstrip("\n")
    body = store_cli("export", id, "--format", form, "--json").json["body"]
    assert (body == printed) if form in ("md", "html") else body
    assert store_cli("export", id, "--format", form, "--out", "/dev/stdout").code == 0


def test_a_store_error_while_reading_is_not_a_write_error(store_cli: StoreCli, monkeypatch: pytest.MonkeyPatch) -> None:
    id = store_cli.add_conversation()

    def broken(*_: object) -> None:
        raise StoreError("the connection broke", cause="lost", retryable=True)

    monkeypatch.setattr(SqliteStore, "_iter_records", broken)
    ended = store_cli("export", id, "--format", "json", "--out", str(store_cli.folder / "out"))
    assert (ended.code, ended.err) == (75, "segue: the connection broke\n")
    assert not (store_cli.folder / "out").exists()
