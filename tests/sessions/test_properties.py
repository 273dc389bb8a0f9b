"""Any history can be moved and comes home: the next requests are valid, and the first session is as it was."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.errors import InputError
from segue.sessions.client import NewSession, SessionFile, SessionItem
from segue.sessions.lines import decode_lines
from segue.sessions.mover import MoveResult
from segue.sessions.opencode import writer as opencode_writer
from segue.sessions.pi.writer import PiWriter
from segue.sessions.registry import CLIENTS as ALL_CLIENTS
from segue.sessions.rendering import split_body
from segue.sessions.session_search import list_sessions
from tests.budget import examples, sample
from tests.cli.client_logs import ClaudeCode, Codex, Contents, Pi
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios
from tests.properties.scenario import Scenario
from tests.sessions.record import FOLDER
from tests.sessions.world import START, World, texts

CLIENTS = ("claude", "codex", "gemini", "qwen", "pi", "opencode")
LINE_CLIENTS = CLIENTS[:-1]
PAIRS = [(source, target) for source in CLIENTS for target in CLIENTS if source != target]

_NEUTRAL_TYPES = ("text", "image", "tool_use", "tool_result")
# Values that no client has in most places.
_ODD_VALUES = (None, True, 0, -1, 1e99, 2**70, "", "null", [], {}, [1], [None], [[]], {"a": 1}, [{"type": "text"}])


def build_lines(client: str, scenario: Scenario) -> list[dict[str, Any]]:
    """Return a history as the lines of a session."""
    if client == "claude":
        log = ClaudeCode()
        for number, message in enumerate(build_body(scenario, "anthropic")["messages"]):
            if message["role"] == "assistant":
                content = message["content"]
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                log.reply(f"msg_{number}", *blocks)
            else:
                log.user(message["content"])
        return log.lines
    if client in ("pi", "opencode"):
        return build_neutral(client, build_body(scenario, "anthropic")["messages"])
    if client != "codex":
        contents = Contents(client)
        for content in build_body(scenario, "gemini")["contents"]:
            contents.content(content["role"], *content["parts"])
        return contents.lines
    rollout = Codex()
    for item in build_body(scenario, "openai-responses")["input"]:
        content = item.get("content")
        if isinstance(content, str):
            kind = "output_text" if item.get("role") == "assistant" else "input_text"
            item = {**item, "content": [{"type": kind, "text": content}]}
        rollout.line("response_item", **{"type": "message", **item})
    return rollout.lines


def _has_place(block: dict[str, Any]) -> bool:
    """Return whether sessions of pi and opencode have a place for a block: pictures have their content with them."""
    return block["type"] in _NEUTRAL_TYPES and '"url"' not in json.dumps(block)


def build_neutral(client: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history as the lines of pi or the value of opencode, written by the client's own writer."""
    body = {"messages": messages}
    items = tuple(SessionItem(item) for item in split_body(body, "anthropic") if _has_place(item["content"][0]))
    if client == "opencode":
        # It stores objects only: arguments that are cut are empty.
        for item in items:
            block = item.value["content"][0]
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                block["input"] = {}
        return decode_lines(opencode_writer.encode(NewSession("ses_s", items, "/work", START)))
    lines = decode_lines(PiWriter.encode(NewSession("s", items, "/work", START)))
    return [*Pi().lines, *lines[1:]]


@pytest.mark.parametrize(("source", "target"), [*sample(PAIRS, 2, start=1)])
def test_any_history_can_be_moved_and_comes_home(source: str, target: str):
    @given(scenario=scenarios())
    @examples(4, items=len(PAIRS))
    def check(scenario: Scenario) -> None:
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder))
            session = world.add_lines(source, build_lines(source, scenario))
            try:
                moved = world.move(session, target)
            except InputError as error:
                if "no messages" in error.message:
                    return
                raise
            assert world.violations(moved.session) == []
            assert world.move(session, target).report.action == "unchanged"
            before = world.load(session)
            world.resume(moved.session)
            assert world.move(moved.session, source).report.action == "extended"
            assert world.is_continued(session, before)
            assert world.load(session).count(b"TASK-leg1") > before.count(b"TASK-leg1")
            assert texts(world.read(session), "ai")[-1] == "leg1 answer."
            assert [result for *_, result in world.calls(session)][-1].strip().endswith("RESULT-LEG1")

    check()


def _places(value: Any, *before: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a line."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*before, key)
        yield from _places(item, *before, key)


def _replace(line: Any, place: tuple[Any, ...], new: Any) -> None:
    *above, last = place
    for key in above:
        line = line[key]
    line[last] = new


def _move(world: World, client: str, data: bytes) -> tuple[SessionFile, MoveResult] | InputError:
    """Find and move a session; return the error if it is refused."""
    try:
        session = world.add(client, data)
        list_sessions(ALL_CLIENTS.values(), world.home, None)
        return session, world.move(session, "codex" if client == "claude" else "claude")
    except InputError as error:
        return error


@pytest.mark.parametrize("client", LINE_CLIENTS)
def test_a_session_with_an_odd_value_is_moved_or_refused_with_its_place(client: str):
    rows = (FOLDER / f"{client}.jsonl").read_text().splitlines()
    places = [(number, place) for number, row in enumerate(rows) for place in _places(json.loads(row))]

    @given(damage=st.sampled_from(places), odd=st.sampled_from(_ODD_VALUES))
    @examples(12, items=len(LINE_CLIENTS))
    def check(damage: tuple[int, tuple[Any, ...]], odd: Any) -> None:
        lines = [json.loads(row) for row in rows]
        number, place = damage
        _replace(lines[number], place, odd)
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder))
            data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            outcome = _move(world, client, data)
            if isinstance(outcome, InputError):
                assert outcome.path.startswith(folder)
                return
            session, moved = outcome
            assert world.violations(moved.session) == []
            assert world.move(moved.session, client).report.action == "unchanged"
            assert world.load(session) == data

    check()
