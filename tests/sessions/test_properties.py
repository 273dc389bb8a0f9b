"""Any history can be moved and comes home: the next requests are valid, and the first session is as it was."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from segue.errors import InputError
from segue.sessions.client import Draft, Unit, decode_lines
from segue.sessions.opencode import writer as opencode_writer
from segue.sessions.opencode.settings import UNKNOWN_MODEL
from segue.sessions.pi import writer as pi_writer
from segue.sessions.rendering import split_body
from tests.budget import examples
from tests.cli.client_logs import ClaudeCode, Codex, Contents, Pi
from tests.properties.bodies import build_body
from tests.properties.generators import scenarios
from tests.properties.scenario import Scenario
from tests.sessions.world import START, World, texts

CLIENTS = ("claude", "codex", "gemini", "qwen", "pi", "opencode")
PAIRS = [(source, target) for source in CLIENTS for target in CLIENTS if source != target]

_NEUTRAL_TYPES = ("text", "image", "tool_use", "tool_result")


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
    units = tuple(Unit(unit) for unit in split_body(body, "anthropic") if _has_place(unit["content"][0]))
    if client == "opencode":
        # It stores objects only: arguments that are cut are empty.
        for unit in units:
            block = unit.value["content"][0]
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                block["input"] = {}
        return decode_lines(opencode_writer.encode(Draft("ses_s", units, "/work", START), "1.18.33", UNKNOWN_MODEL))
    lines = decode_lines(pi_writer.encode(Draft("s", units, "/work", START), (None, None)))
    return [*Pi().lines, *lines[1:]]


@pytest.mark.parametrize(("source", "target"), PAIRS)
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
