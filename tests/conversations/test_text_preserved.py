"""Every conversation × every wire: every text, tool argument and tool result is in the body or the report.

The words are gathered from the source by its own shape and looked for in all strings of the output, inside JSON that
is text as well. Thoughts are left out: who may hear them is another question.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import segue
from tests.conversations.build import Case
from tests.conversations.conversions import Conversions
from tests.each import for_each

TARGETS = tuple(row.name for row in segue.formats() if getattr(row, "kind", "wire") != "text")
EVERY_TARGET = for_each("target", TARGETS)
Body = dict[str, Any]


def strings(value: Any) -> Iterator[str]:
    """All strings in a value, including those inside JSON strings."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except ValueError:
                return
            yield from strings(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def _leaves(value: Any) -> Iterator[str]:
    """The strings of a value without its keys; JSON strings are opened."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _leaves(inner)


def _texts(content: Any) -> Iterator[str]:
    """The text of a content: a string, or parts that have text."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        for key in ("text", "refusal"):
            if isinstance(part, dict) and part.get("type") != "thinking" and isinstance(part.get(key), str):
                yield part[key]


def chat_texts(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        yield from _texts(message.get("content"))
        for call in message.get("tool_calls") or ():
            inner = call.get("function") or call.get("custom") or {}
            yield from _leaves(inner.get("arguments", inner.get("input")))


def anthropic_texts(body: Body) -> Iterator[str]:
    yield from _texts(body.get("system"))
    for message in body["messages"]:
        yield from _texts(message.get("content"))
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_use":
                yield from _leaves(block.get("input"))
            if block.get("type") == "tool_result":
                yield from _texts(block.get("content"))


def responses_texts(body: Body) -> Iterator[str]:
    yield from _texts(body.get("instructions"))
    yield from _texts(body["input"] if isinstance(body["input"], str) else "")
    for item in body["input"] if isinstance(body["input"], list) else ():
        yield from _texts(item.get("content") if item.get("type") != "reasoning" else None)
        match item.get("type"):
            case "function_call":
                yield from _leaves(item["arguments"])
            case "custom_tool_call":
                yield item["input"]
            case "mcp_call":
                yield from _leaves([item["arguments"], item.get("output"), item.get("error")])
            case str(kind) if kind.endswith("_call_output"):
                yield from _texts(item.get("output"))
                yield from _leaves(item["output"] if "documents" in (item.get("output") or ()) else None)
            case "structured_outputs":
                yield from _leaves(item["output"])
            case "oauth_consent_request":
                yield item["consent_link"]
            case "workflow_action":
                yield from (item["kind"], item["action_id"])
            case "memory_search_call":
                yield from (result["memory_item"]["content"] for result in item["results"])
            case str(kind) if kind.endswith("_call") and isinstance(item.get("arguments"), str):
                yield from _leaves(item["arguments"])
            case _:
                pass


def gemini_texts(body: Body) -> Iterator[str]:
    system = body.get("systemInstruction", body.get("system_instruction")) or {}
    for part in [*system.get("parts", ()), *(part for content in body["contents"] for part in content["parts"])]:
        if not part.get("thought") and isinstance(part.get("text"), str):
            yield part["text"]
        call = part.get("functionCall", part.get("function_call")) or part.get("toolCall") or {}
        yield from _leaves(call.get("args"))
        result = part.get("functionResponse", part.get("function_response")) or part.get("toolResponse") or {}
        yield from _leaves(result.get("response"))
        yield from _leaves(part.get("executableCode", {}).get("code"))
        yield from _leaves(part.get("codeExecutionResult", {}).get("output"))


def bedrock_texts(body: Body) -> Iterator[str]:
    yield from _texts(body.get("system"))
    for message in body["messages"]:
        yield from _texts(message["content"])
        for block in message["content"]:
            yield from _leaves(block.get("toolUse", {}).get("input"))
            result = block.get("toolResult", {}).get("content", ())
            yield from _texts(list(result))
            yield from _leaves([part.get("json") for part in result])


READERS = {
    "bedrock": bedrock_texts,
    "anthropic": anthropic_texts,
    "openai-responses": responses_texts,
    "azure-foundry": responses_texts,
    "gemini": gemini_texts,
}


def source_texts(case: Case) -> set[str]:
    whole = READERS.get(case.source, chat_texts)(case.body)
    # Half an emoji becomes U+FFFD; leading and trailing white space is ignored.
    return {word.strip() for word in whole if word.strip() and not any("\ud800" <= one <= "\udfff" for one in word)}


def message_texts(case: Case) -> list[str]:
    """The unique texts of users and models in order; no results, no arguments."""
    texts: list[str] = []
    for entry in case.body.get("messages") or case.body.get("contents") or case.body["input"]:
        if not isinstance(entry, dict) or entry.get("role") not in ("user", "assistant", "model"):
            continue
        parts = entry.get("parts") or []
        texts.extend(_texts(entry.get("content")))
        texts.extend(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))
    once = [word.strip() for word in texts if len(word.strip()) > 4]
    everything = " ".join(strings(case.body))
    return [word for word in once if everything.count(word) == 1 and word.isprintable()]


def urls(value: Any) -> Iterator[str]:
    """The URLs of images, documents and audio; without citations."""
    if isinstance(value, str) and value.startswith("https://"):
        yield value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if key not in ("annotations", "citations"):
            yield from urls(inner)


@EVERY_TARGET
def test_no_url_is_lost(made: Conversions, target: str) -> None:
    """Unsupported media is replaced by its URL."""
    out = made.to(target)
    there = "\n".join(strings(out.body))
    texts = made.case.body.get("messages") or made.case.body.get("contents") or made.case.body["input"]
    lost = sorted(address for address in urls(texts) if address not in there)
    assert not lost, f"lost: {lost}"


@EVERY_TARGET
def test_texts_keep_their_order(made: Conversions, target: str) -> None:
    out = made.to(target)
    there = "\n".join(strings(out.body.get("messages") or out.body.get("contents") or out.body["input"]))
    texts = message_texts(made.case)
    places = [there.index(word) for word in texts if word in there]
    assert places == sorted(places), f"said in another order: {texts}"


@EVERY_TARGET
def test_no_text_is_lost(made: Conversions, target: str) -> None:
    out = made.to(target)
    there = "\n".join(strings([out.body, out.report.to_dict()]))
    lost = sorted(word for word in source_texts(made.case) if word not in there)
    assert not lost, f"lost: {lost}"
