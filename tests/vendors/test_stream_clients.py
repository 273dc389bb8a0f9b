"""Streams that segue writes, read by the vendors' own clients and checked by their own rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import openai
import pytest
from google import genai
from google.genai import errors, types

from segue.canonical.blocks import Text, Thinking, ToolCall
from segue.wire.base import ApiError
from segue.wire.dialects.azure_foundry import WIRE as AZURE_FOUNDRY
from segue.wire.gemini import WIRE as GEMINI
from segue.wire.openai_responses import WIRE as OPENAI_RESPONSES
from segue.wire.stream.events import Event, Failed
from tests.streams.parsing import payloads_of, read, sse
from tests.streams.rendering import cross_api_events, render_stream
from tests.streams.responses_events import DIALECTS, EVERYTHING, stream_events
from tests.streams.test_gemini import CHUNKS
from tests.vendors.server import serve_canned

WORDS = "Hello wörld 😀"


CROSS_API = cross_api_events(
    Thinking("Hm."),
    Text("Hello "),
    Text("wörld 😀"),
    ToolCall("read_file", {"path": "a"}, id="hist_tool_a"),
    ToolCall("patch", "*** Begin", id="hist_tool_b", kind="custom"),
    ToolCall("read_file", {"path": "b"}, id="hist_tool_c"),
    finish="tool_calls",
)


# --------------------------------------------------------------------------------------------------------------- OpenAI


def _streamed(data: bytes) -> tuple[list[Any], Any]:
    """The events of OpenAI's client, and its final response."""
    with (
        serve_canned([data]) as server,
        openai.OpenAI(api_key="x", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        with client.responses.stream(model="gpt-5", input="Hi") as stream:
            events: list[Any] = list(stream)
        return events, events[-1].response


def test_openai_reads_a_same_api_response() -> None:
    events, response = _streamed(
        render_stream(OPENAI_RESPONSES, read(OPENAI_RESPONSES, sse(*stream_events(EVERYTHING)))[0])
    )
    assert response.output_text == "Hello wörld 😀 and moreBye."
    assert [item.type for item in response.output] == [item["type"] for item in EVERYTHING["output"]]
    assert [item.id for item in response.output] == [item["id"] for item in EVERYTHING["output"]]
    assert response.output[0].encrypted_content == "gAAA"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.name)
def test_openai_reads_a_cross_api_reply(wire: Any) -> None:
    events, response = _streamed(render_stream(wire, CROSS_API))
    assert response.output_text == WORDS
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "function_call",
    ]
    reasoning, _, first, free, second = response.output
    assert reasoning.summary[0].text == "Hm."
    assert [json.loads(call.arguments) for call in (first, second)] == [{"path": "a"}, {"path": "b"}]
    assert (first.call_id, free.input, first.status) == ("call_a", "*** Begin", "completed")
    assert (response.status, response.usage.total_tokens) == ("completed", 18)
    snapshots = [event.snapshot for event in events if event.type == "response.output_text.delta"]
    assert snapshots == ["Hello ", "wörld 😀"]
    grown = [event.snapshot for event in events if event.type == "response.function_call_arguments.delta"]
    assert grown == ['{"path":"a"}', '{"path":"b"}']


@pytest.mark.parametrize(
    ("finish", "kind", "reason"),
    [("length", "incomplete", "max_output_tokens"), ("filter", "incomplete", "content_filter")],
)
def test_openai_reads_how_it_ended(finish: Any, kind: str, reason: str) -> None:
    events, response = _streamed(render_stream(OPENAI_RESPONSES, cross_api_events(Text("Hi"), finish=finish)))
    assert events[-1].type == f"response.{kind}"
    assert response.incomplete_details.reason == reason


def test_openai_reads_a_failure() -> None:
    events_sent = [*cross_api_events(Text("Hi"))[:-2], Failed(ApiError(429, "Slow down.", code="rate_limit_exceeded"))]
    events, response = _streamed(render_stream(OPENAI_RESPONSES, events_sent))
    assert events[-1].type == "response.failed"
    assert (response.error.code, response.error.message) == ("rate_limit_exceeded", "Slow down.")


def test_openai_types_have_every_event() -> None:
    """Each payload is a valid event of the client's own models, none of them unknown."""
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for events in (CROSS_API, read(OPENAI_RESPONSES, sse(*stream_events(EVERYTHING)))[0]):
        for payload in payloads_of(render_stream(OPENAI_RESPONSES, events)):
            assert adapter.validate_python(payload).type == payload["type"]


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.name)
@pytest.mark.parametrize(
    "events",
    [CROSS_API, cross_api_events(), cross_api_events(Text("Hi"), finish="length"), cross_api_events(finish="error")],
)
def test_azure_accepts_the_event_order(wire: Any, events: list[Event]) -> None:
    """AZF-12."""
    machine = pytest.importorskip("azure.ai.agentserver.responses.streaming._state_machine")
    validator = machine.EventStreamValidator()
    events_sent = payloads_of(render_stream(wire, events))
    for payload in events_sent:
        validator.validate_next(payload)
    assert validator._terminal_seen


def test_azure_accepts_the_event_order_of_a_same_api_response() -> None:
    machine = pytest.importorskip("azure.ai.agentserver.responses.streaming._state_machine")
    for wire in DIALECTS:
        machine._validate_response_event_stream(
            payloads_of(render_stream(wire, read(wire, sse(*stream_events(EVERYTHING)))[0]))
        )
    assert AZURE_FOUNDRY in DIALECTS


# --------------------------------------------------------------------------------------------------------------- Google


def _client(url: str) -> genai.Client:
    return genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url))


def _generated(data: bytes) -> list[types.GenerateContentResponse]:
    with serve_canned([data]) as server, _client(server.url) as client:
        return list(client.models.generate_content_stream(model="gemini-3-pro", contents="Hi"))


def _parts(chunks: Sequence[types.GenerateContentResponse]) -> list[types.Part]:
    return [
        part
        for chunk in chunks
        for candidate in chunk.candidates or []
        if candidate.content
        for part in candidate.content.parts or []
    ]


def test_google_reads_a_same_api_reply() -> None:
    chunks = _generated(render_stream(GEMINI, read(GEMINI, sse(*CHUNKS))[0]))
    parts = _parts(chunks)
    assert "".join(part.text or "" for part in parts if not part.thought) == "Let me look, wörld 😀."
    assert "".join(part.text or "" for part in parts if part.thought) == "**Plan**\nRead it."
    calls = [part for part in parts if part.function_call]
    assert [part.function_call.args for part in calls if part.function_call] == [
        {"path": "a"},
        {"path": "b"},
        {"path": "c"},
    ]
    assert [part.thought_signature for part in calls] == [b"sig", None, None]
    assert chunks[-1].candidates
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[-1].usage_metadata
    assert (chunks[-1].usage_metadata.prompt_token_count, chunks[-1].usage_metadata.total_token_count) == (11, 18)
    assert {chunk.response_id for chunk in chunks} == {"r1"}


def test_google_reads_a_cross_api_reply() -> None:
    chunks = _generated(render_stream(GEMINI, CROSS_API))
    parts = _parts(chunks)
    assert "".join(part.text or "" for part in parts if not part.thought) == WORDS
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.id, call.name, call.args) for call in calls] == [
        ("call_a", "read_file", {"path": "a"}),
        ("call_b", "patch", {"input": "*** Begin"}),
        ("call_c", "read_file", {"path": "b"}),
    ]


def test_google_reads_a_failure() -> None:
    events_sent = [*cross_api_events(Text("Hi"))[:-2], Failed(ApiError(429, "Slow down."))]
    with pytest.raises(errors.APIError, match=r"Slow down\."):
        _generated(render_stream(GEMINI, events_sent))


def test_google_runs_the_calls_of_a_stream_by_itself() -> None:
    """A chat with automatic function calling: two calls at once, then the answer; and then a second question."""
    asked: list[str] = []

    def read_file(path: str) -> str:
        """Reads a file."""
        asked.append(path)
        return f"content of {path}"

    calls = [ToolCall("read_file", {"path": path}, id=f"hist_tool_{path}") for path in ("a", "b")]
    answers = [
        render_stream(GEMINI, cross_api_events(Thinking("Hm."), Text("Let me see. "), *calls, finish="tool_calls")),
        render_stream(GEMINI, cross_api_events(Text("They "), Text("differ."))),
        render_stream(GEMINI, cross_api_events(Text("Bye."))),
    ]
    with serve_canned(answers) as server, _client(server.url) as client:
        chat = client.chats.create(model="gemini-3-pro", config=types.GenerateContentConfig(tools=[read_file]))
        first = "".join(
            part.text or "" for part in _parts(list(chat.send_message_stream("Compare."))) if not part.thought
        )
        second = "".join(chunk.text or "" for chunk in chat.send_message_stream("Thanks."))
        bodies = [json.loads(body) for _, body in server.requests]
    assert (asked, first, second) == (["a", "b"], "Let me see. They differ.", "Bye.")
    sent_parts = [part for content in bodies[1]["contents"] for part in content["parts"]]
    results = [part["functionResponse"] for part in sent_parts if "functionResponse" in part]
    assert [one["response"] for one in results] == [{"result": "content of a"}, {"result": "content of b"}]
    assert [part["functionCall"]["id"] for part in sent_parts if "functionCall" in part] == ["call_a", "call_b"]
    last = [part.get("text") for content in bodies[2]["contents"] for part in content["parts"]]
    assert last[-1] == "Thanks."
    assert "differ." in last
