"""Events of the Responses API: a response as OpenAI streams it, and helpers that read its events."""

from __future__ import annotations

from typing import Any

from segue.canonical.blocks import ToolCall
from segue.wire.dialects.azure_foundry import WIRE as AZURE_FOUNDRY
from segue.wire.openai_responses import WIRE as OPENAI_RESPONSES
from segue.wire.openai_responses.stream_items import INPUT_KEYS
from segue.wire.stream.events import BlockStart, Event, InputDelta, TextDelta
from tests.conversations.replies import responses_reply
from tests.streams.parsing import Body, content_of, read

WIRE = OPENAI_RESPONSES
DIALECTS = [OPENAI_RESPONSES, AZURE_FOUNDRY]
CITED = {"type": "url_citation", "start_index": 0, "end_index": 5, "url": "https://a.example", "title": "A"}


def message(*texts: str, id: str = "msg_1", **part: Any) -> Body:
    content = [{"type": "output_text", "text": text, "annotations": [], **part} for text in texts]
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content}


def function(arguments: str, id: str = "fc_1", call_id: str = "call_1", name: str = "read_file", **more: Any) -> Body:
    bare = {"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return {**bare, "status": "completed", **more}


def custom(text: str) -> Body:
    return {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_c", "name": "patch", "input": text}


def reasoning(*summary: str, **more: Any) -> Body:
    payloads = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": payloads, **more}


SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "lisbon", "sources": [{"type": "url", "url": "https://a.example"}]},
}
MCP = {"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "t", "arguments": '{"a":1}', "output": "o"}
CODE = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1+1", "outputs": []}
IMAGE = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk="}
COMPUTER = {
    "id": "cu_1",
    "type": "computer_call",
    "call_id": "call_u",
    "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
    "pending_safety_checks": [],
    "status": "completed",
}
EVERYTHING = responses_reply(
    reasoning("Think.", "Again.", encrypted_content="gAAA"),
    message("Hello wörld 😀", " and more"),
    SEARCH,
    function('{"path": "a"}'),
    function('{"path": "b"}', "fc_2", "call_2"),
    custom("*** Begin"),
    message("Bye.", id="msg_2"),
)


# ------------------------------------------------------------------------------------------------- by the book, written


def cut_text(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream_events(body: Body, size: int = 3) -> list[Body]:
    """A response as OpenAI streams it, built from the documentation, independent of the tested code."""
    payloads: list[Body] = []
    empty = {**body, "output": [], "usage": None, "status": "in_progress"}
    payloads += [{"type": "response.created", "response": empty}, {"type": "response.in_progress", "response": empty}]
    for index, item in enumerate(body["output"]):
        payloads += item_events(item, index, size)
    payloads.append({"type": f"response.{body['status']}", "response": body})
    return [{**one, "sequence_number": number} for number, one in enumerate(payloads)]


def item_events(item: Body, index: int, size: int) -> list[Body]:
    kind, at = item["type"], {"item_id": item["id"], "output_index": index}
    bare = {**item, "status": "in_progress"} if "status" in item else dict(item)
    payloads: list[Body] = []
    if kind == "message":
        bare["content"] = []
        for number, part in enumerate(item["content"]):
            place = {**at, "content_index": number}
            key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
            payloads.append(
                {"type": "response.content_part.added", **place, "part": {**part, key: "", "annotations": []}}
            )
            payloads += [{"type": f"response.{name}.delta", **place, "delta": one} for one in cut_text(part[key], size)]
            payloads += [
                {"type": "response.output_text.annotation.added", **place, "annotation_index": n, "annotation": one}
                for n, one in enumerate(part.get("annotations", []))
            ]
            payloads.append({"type": f"response.{name}.done", **place, key: part[key]})
            payloads.append({"type": "response.content_part.done", **place, "part": part})
    elif kind == "reasoning":
        bare = {"id": item["id"], "type": kind, "summary": [], "encrypted_content": "not yet"}
        for listed, numbered, part, text in (
            ("summary", "summary_index", "reasoning_summary_part", "reasoning_summary_text"),
            ("content", "content_index", "content_part", "reasoning_text"),
        ):
            for number, entry in enumerate(item.get(listed) or []):
                place = {**at, numbered: number}
                payloads.append({"type": f"response.{part}.added", **place, "part": {**entry, "text": ""}})
                payloads += [
                    {"type": f"response.{text}.delta", **place, "delta": one} for one in cut_text(entry["text"], size)
                ]
                payloads.append({"type": f"response.{text}.done", **place, "text": entry["text"]})
                payloads.append({"type": f"response.{part}.done", **place, "part": entry})
    elif kind in ("function_call", "custom_tool_call"):
        key = INPUT_KEYS[kind]
        name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
        bare[key] = ""
        payloads += [{"type": f"response.{name}.delta", **at, "delta": one} for one in cut_text(item[key], size)]
        payloads.append({"type": f"response.{name}.done", **at, key: item[key]})
    added = {"type": "response.output_item.added", "output_index": index, "item": bare}
    return [added, *payloads, {"type": "response.output_item.done", "output_index": index, "item": item}]


def check_same_reply(body: Body, data: bytes, *, finish: str | None = None) -> list[Event]:
    events, reply = read(WIRE, data)
    whole = WIRE.parse_reply(body)
    assert content_of(reply) == content_of(whole)
    assert (reply.finish, reply.usage, reply.id, reply.model, reply.created) == (
        finish or whole.finish,
        whole.usage,
        whole.id,
        whole.model,
        whole.created,
    )
    assert len({call.id for call in reply.calls}) == len(reply.calls)
    return events


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def inputs(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, InputDelta))


def started_calls(events: list[Event]) -> list[str]:
    """The ids of calls in the order of their start."""
    return [event.block.id for event in events if isinstance(event, BlockStart) and isinstance(event.block, ToolCall)]


def select_events(payloads: list[Body], *kinds: str) -> list[Body]:
    return [one for one in payloads if one["type"].removeprefix("response.") in kinds]


def drop_events(payloads: list[Body], *kinds: str) -> list[Body]:
    return [one for one in payloads if not any(word in one["type"] for word in kinds)]
