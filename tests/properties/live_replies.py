"""Replies of all ten APIs for a live conversation: whole and streamed, with hosted calls, refused, cut off, empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import segue
from segue.canonical.request import Reply
from segue.wire.registry import WIRES
from tests.store.reply_bodies import reply_body
from tests.streams.rendering import stream_reply

APIS = tuple(WIRES)
NAMES = ("look", "read file", "run", "undeclared.tool")
# Ids that other providers project to, or start from in each reply.
IDS = (
    *("call_0", "call_1", "toolu_0", "tooluse_0", "functions.look:0", "functions.run:0", "functions.look:1", "look:0"),
    *("abcdefgh1", "hist_tool_a", "x" * 70, None),
)
BROKEN = '{"path": "src/'


@dataclass(frozen=True)
class LiveReply:
    """A reply to be made. `form` is what is odd about it; `cut` is the share of a stream that arrives."""

    api: str
    thought: str = ""
    text: str = ""
    calls: tuple[tuple[str, str | None], ...] = ()
    form: str = "plain"  # plain, hosted, refusal, broken, length
    streamed: bool = False
    cut: float = 1.0

    def body(self) -> dict[str, Any]:
        """The whole reply as a body of its API."""
        body = reply_body(self.api, thought=self.thought, text=self.text, calls=self.calls)
        match self.form:
            case "hosted":
                _add_hosted(self.api, body)
            case "refusal":
                _refuse(self.api, body)
            case "broken":
                _break_arguments(body)
            case "length":
                _break_arguments(body)
                _end_at_limit(self.api, body)
            case _:
                pass
        return body

    def read(self, chat: Any) -> Reply | None:
        """The reply as the conversation's reader returns it; None if the stream is not a reply."""
        if not self.streamed:
            return None
        data = stream_reply(self.api, WIRES[self.api].parse_reply(self.body()))
        reader = chat.render(self.api).open_reader()
        reader.feed(data[: round(len(data) * self.cut)])
        try:
            return reader.close()
        except segue.SegueError:
            return None


def _blocks(api: str, body: dict[str, Any]) -> list[Any]:
    match api:
        case "anthropic":
            return body["content"]
        case "gemini":
            return body["candidates"][0]["content"]["parts"]
        case "openai-responses" | "azure-foundry":
            return body["output"]
        case _:
            return []


def _add_hosted(api: str, body: dict[str, Any]) -> None:
    match api:
        case "anthropic":
            result = {"type": "web_search_result", "url": "https://a.example", "title": "a", "encrypted_content": "c2"}
            items: list[Any] = [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [result]},
            ]
        case "gemini":
            items = [
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ]
        case "openai-responses" | "azure-foundry":
            action = {"type": "search", "query": "q"}
            items = [{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}]
        case _:
            items = []
    _blocks(api, body)[:0] = items


def _refuse(api: str, body: dict[str, Any]) -> None:
    match api:
        case "anthropic":
            body["stop_reason"] = "refusal"
        case "gemini":
            body["candidates"][0]["finishReason"] = "SAFETY"
        case "openai-responses" | "azure-foundry":
            parts = [{"type": "refusal", "refusal": "I can't."}]
            body["output"].append(
                {"type": "message", "id": "msg_9", "role": "assistant", "status": "completed", "content": parts}
            )
        case "bedrock":
            body["stopReason"] = "guardrail_intervened"
        case _:
            body["choices"][0]["message"]["refusal"] = "I can't."


def _break_arguments(body: dict[str, Any]) -> None:
    """Cut the arguments of the last call, where they are text."""
    if calls := [item for item in body.get("output", ()) if isinstance(item, dict) and "arguments" in item]:
        calls[-1]["arguments"] = BROKEN
    if "choices" in body and (calls := body["choices"][0]["message"].get("tool_calls")):
        calls[-1]["function"]["arguments"] = BROKEN


def _end_at_limit(api: str, body: dict[str, Any]) -> None:
    match api:
        case "anthropic":
            body["stop_reason"] = "max_tokens"
        case "gemini":
            body["candidates"][0]["finishReason"] = "MAX_TOKENS"
        case "openai-responses" | "azure-foundry":
            body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        case "bedrock":
            body["stopReason"] = "max_tokens"
        case _:
            body["choices"][0]["finish_reason"] = "length"


_calls = st.lists(st.tuples(st.sampled_from(NAMES[:3]) | st.sampled_from(NAMES), st.sampled_from(IDS)), max_size=3)
replies = st.builds(
    LiveReply,
    st.sampled_from(APIS),
    st.sampled_from(["", "", "hm"]),
    st.sampled_from(["", "", "I look.", " ", "Done."]),
    _calls.map(tuple),
    st.sampled_from(["plain", "plain", "plain", "hosted", "refusal", "broken", "length"]),
    st.sampled_from([False, False, True]),
    st.sampled_from([1.0, 1.0, 0.7, 0.4]),
)
ordinary_replies = st.builds(
    LiveReply, st.sampled_from(APIS), st.sampled_from(["", "hm"]), st.sampled_from(["", "I look."]), _calls.map(tuple)
)
