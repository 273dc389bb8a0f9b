"""The export of a long conversation: bounded memory, linear work, and never a half-written file."""

from __future__ import annotations

import errno
import gc
import io
import json
import tempfile
import tracemalloc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import segue.cli.diagnosis
import segue.cli.window_check
import segue.store.body
import segue.store.sql
from segue._check import check
from segue.canonical.blocks import Media, Message, Text, ToolCall
from segue.canonical.request import Request, Tool
from segue.cli.diagnosis import diagnose
from segue.cli.export import open_export
from segue.conformance.rule import Verdict
from segue.conversion.pieces import Piece, render_pieces
from segue.errors import StoreError
from segue.store.base import ConversationStore
from segue.store.body import render_body
from segue.store.events import CallCompleted, Event, MessageAdded, Rewound, SettingsChanged, Switched
from segue.store.export import dump_events
from segue.store.replay import replay_events
from segue.store.segments import read_segments
from segue.store.sqlite import SqliteStore
from segue.view.html import render_html
from segue.view.markdown import render_markdown
from segue.view.page import Page
from segue.wire.registry import WIRES
from tests.cli.store_cli import StoreCli

FORMATS = ("json", "md", "html", "anthropic")
SIZES = (400, 1200)
TEXT = "x" * 2000


def exchanges(count: int) -> Iterable[Event]:
    """Messages of 2 kB: user, call, result and answer in turn."""
    yield SettingsChanged(tools=(Tool("look", parameters={"type": "object", "properties": {}}),))
    for number in range(count // 4):
        call = ToolCall("look", {"n": number}, id=f"hist_tool_{number:024}")
        yield MessageAdded(Message("human", (Text(TEXT),)))
        yield MessageAdded(Message("ai", (Text(TEXT), call), turn_key=f"turn-{2 * number + 1}"))
        yield CallCompleted(Message("tool", (call.respond(TEXT),), turn_key=f"turn-{2 * number + 1}"))
        yield MessageAdded(Message("ai", (Text(TEXT),), turn_key=f"turn-{2 * number + 2}"))
    yield Switched("anthropic", "claude-sonnet-4-5")


def rewound_exchanges(count: int) -> Iterable[Event]:
    """The same messages, with a rewind after every hundredth event."""
    turn: str | None = None
    for number, event in enumerate(exchanges(count), 1):
        yield event
        if isinstance(event, MessageAdded) and event.message.turn_key:
            turn = event.message.turn_key
        if number % 100 == 0 and turn is not None:
            yield MessageAdded(Message("human", (Text("dropped"),)))
            yield MessageAdded(Message("ai", (Text("dropped"),), turn_key=f"dropped-{number}"))
            yield Rewound(turn)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[int, SqliteStore]]:
    """A store for each size, with the conversations `long` and `rewound`."""
    folder = tmp_path_factory.mktemp("streaming")
    opened = {size: SqliteStore(folder / f"{size}.db") for size in SIZES}
    for size, store in opened.items():
        store.create(id="long", events=exchanges(size))
        store.create(id="rewound", events=rewound_exchanges(size))
    yield opened
    for store in opened.values():
        store.close()


def export(store: ConversationStore, form: str) -> int:
    """Export without keeping the output; return its size."""
    with open_export(store, store.get("long"), form, None) as (chunks, _):
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


def body_chunks(store: SqliteStore, conversation: str) -> Iterator[bytes]:
    def collect(_: Piece) -> None:
        gc.collect()

    with render_body(read_segments(store, conversation), "openai-chat", None, on_piece=collect) as body:
        assert body.is_in_pieces
        yield from body.chunks()


READERS: dict[str, Callable[[SqliteStore], Iterable[object]]] = {
    "json": lambda store: dump_events(store.get("long"), store.events("long")),
    "pages": lambda store: read_segments(store, "long").segments(),
    "body": lambda store: body_chunks(store, "long"),
    "diag": lambda store: [diagnose(store, "long", None, None, None)],
    "body after rewinds": lambda store: body_chunks(store, "rewound"),
    "diag after rewinds": lambda store: [diagnose(store, "rewound", None, None, None)],
}


def render_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render conversations of this size in pieces, and keep nothing of the body in memory."""
    monkeypatch.setattr(segue.store.body, "MIN_MESSAGES", 100)
    monkeypatch.setattr(segue.cli.diagnosis, "MIN_MESSAGES", 100)
    monkeypatch.setattr(segue.store.body, "_MAX_IN_MEMORY", 1)
    monkeypatch.setitem(render_pieces.__kwdefaults__, "piece_size", 50)


@pytest.fixture
def frozen_heap() -> Generator[None]:
    """All objects of other tests are exempt from garbage collection, so that it is fast."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("name", READERS)
def test_memory_does_not_grow_with_the_conversation(
    stores: dict[int, SqliteStore], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    render_in_pieces(monkeypatch)
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


@pytest.mark.parametrize(("turn", "reads"), [(None, 1), ("turn-200", 2)])
def test_diag_decodes_each_event_a_fixed_number_of_times(
    stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch, turn: str | None, reads: int
) -> None:
    with decoded_rows(monkeypatch) as counts:
        assert diagnose(stores[SIZES[0]], "long", turn, None, None).verdict
    assert reads * (SIZES[0] - 1) <= counts[0] <= reads * stores[SIZES[0]].get("long").seq


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


@pytest.mark.parametrize("is_in_pieces", [False, True])
@pytest.mark.parametrize("command", [("export", "--format", "anthropic"), ("diag",)])
def test_a_full_temporary_folder_is_one_line(
    store_cli: StoreCli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], *, is_in_pieces: bool
) -> None:
    class FullFile(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with store_cli.store() as store:
        store.create(id="long", events=exchanges(400))
    if is_in_pieces:
        render_in_pieces(monkeypatch)
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda size: FullFile())
    name, *options = command
    ended = store_cli(name, "long", *options)
    message = f"segue: can't write a temporary file in {tempfile.gettempdir()}: No space left on device\n"
    assert (ended.code, ended.out, ended.err) == (1, "", message)


@pytest.mark.parametrize("conversation", ["long", "rewound"])
@pytest.mark.parametrize("api", WIRES)
def test_body_in_pieces_is_the_rendered_body(
    stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch, api: str, conversation: str
) -> None:
    render_in_pieces(monkeypatch)
    store = stores[SIZES[0]]
    pieces: list[Piece] = []
    read = read_segments(store, conversation)
    expected = replay_events(store.events(conversation)).chat.render(api)
    with render_body(read, api, None, on_piece=pieces.append) as body:
        assert body.data == expected.data
    assert len(pieces) > 4
    assert body.report.emitted_results == expected.report.emitted_results


@pytest.mark.parametrize("conversation", ["long", "rewound"])
@pytest.mark.parametrize("api", WIRES)
def test_diagnosis_in_pieces_is_that_of_the_whole(
    stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch, api: str, conversation: str
) -> None:
    def fields() -> dict[str, Any]:
        found = diagnose(stores[SIZES[0]], conversation, None, api, None).to_dict()
        return {**found, "findings": sorted(found["findings"], key=repr)}

    expected = fields()
    render_in_pieces(monkeypatch)
    assert fields() == expected


def count_checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of messages in each body that is checked from now on."""
    sizes: list[int] = []

    def count(body: bytes, api: Any, *, model: str | None) -> Verdict:
        sizes.append(len(json.loads(body)["messages"]))
        return check(body, api, model=model)

    monkeypatch.setattr(segue.cli.window_check, "check", count)
    return sizes


def test_diagnosis_checks_windows(stores: dict[int, SqliteStore], monkeypatch: pytest.MonkeyPatch) -> None:
    render_in_pieces(monkeypatch)
    sizes = count_checks(monkeypatch)
    assert diagnose(stores[SIZES[0]], "long", None, "anthropic", "claude-sonnet-4-5").verdict
    assert (len(sizes) > 4, max(sizes) < 150) == (True, True), sizes


@pytest.mark.parametrize(
    "events",
    [
        [MessageAdded(Message("ai", (Text("cut off"),), prefill=True))],
        [MessageAdded(Message("human", (Text("read"), Media("document", "application/pdf", data="JVBERg=="))))],
    ],
    ids=["prefill", "document"],
)
def test_conversation_without_pieces_is_rendered_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    render_in_pieces(monkeypatch)
    with SqliteStore(tmp_path / "history.db") as store:
        store.create(id="long", events=[*exchanges(200), *events])
        for api in WIRES:
            expected = replay_events(store.events("long")).chat.render(api)
            with render_body(read_segments(store, "long"), api, None) as body:
                assert (body.data, body.is_in_pieces) == (expected.data, False)
