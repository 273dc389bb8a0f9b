"""Replies of every shape in the catalogue: whole, streamed as the documentation has it, and sent back by a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from segue.wire.openai_responses.item_types import FUNCTION_TYPES
from segue.wire.registry import WIRES
from tests.catalog.vendor_catalog import catalogue, samples
from tests.conversations import build
from tests.conversations.build import output_text, part_call, part_text, reasoning, thinking, thought, tool_use, use
from tests.conversations.replies import anthropic_reply, bedrock_reply, chat_reply, gemini_reply, responses_reply
from tests.streams import anthropic_events, bedrock_events, chat_events, responses_events
from tests.streams.parsing import sse

Body = dict[str, Any]

_SURFACES = {
    ("anthropic", "Messages"): "anthropic",
    ("azure-foundry", "Responses items"): "azure-foundry",
    ("bedrock", "Converse"): "bedrock",
    ("gemini", "generateContent parts"): "gemini",
    ("mistral", "Chat"): "mistral",
    ("openai", "Responses"): "openai-responses",
    ("openai", "Chat Completions"): "openai-chat",
}
_RESPONSES = ("openai-responses", "azure-foundry")


@dataclass(frozen=True)
class ReplyShape:
    api: str
    name: str
    body: Body

    def __str__(self) -> str:
        return f"{self.api}-{self.name}"


@cache
def reply_shapes() -> tuple[ReplyShape, ...]:
    """A reply of each sample that stands in replies, and replies of several blocks."""
    return (*_replies_of_samples(), *_recorded_shapes())


def _replies_of_samples() -> Iterator[ReplyShape]:
    """A reply of each sample, and one of each call with its outputs: the provider ran it."""
    rows = {(row["provider_key"], row["wire_type"]): row for row in catalogue()}
    pairs: dict[tuple[str, str], dict[str, Body]] = {}
    for sample in samples():
        row = rows[sample.provider, sample.wire_type]
        api = _SURFACES.get((sample.provider, row["surface"]))
        # Arguments in parts stand only in chunks of a stream.
        if api is None or sample.boundary != "response" or "partialArgs" in sample.payload.get("functionCall", {}):
            continue
        yield ReplyShape(api, f"{sample.wire_type} {sample.case}", _reply_with(api, sample.payload))
        if sample.pair is not None:
            pairs.setdefault((api, sample.pair), {})[row["role"]] = sample.payload
    for (api, pair), roles in pairs.items():
        # A function call that the provider answers is streamed before its output can be known.
        if "call" in roles and "output" in roles and roles["call"].get("type") not in FUNCTION_TYPES:
            yield ReplyShape(api, f"{pair} with its output", _reply_with(api, roles["call"], roles["output"]))


def _reply_with(api: str, *payloads: Body) -> Body:
    match api:
        case "anthropic":
            return anthropic_reply(*payloads)
        case "bedrock":
            return bedrock_reply(*payloads)
        case "gemini":
            return gemini_reply(*payloads)
        case "azure-foundry" | "openai-responses":
            return responses_reply(*payloads)
        case _ if "function_call" in payloads[0]:
            body = chat_reply(finish="function_call")
            body["choices"][0]["message"] |= payloads[0]
            return body
        case _:
            return chat_reply(*payloads)


def _recorded_shapes() -> Iterator[ReplyShape]:
    """Replies whose fields were seen in recorded traffic, or that have several blocks."""
    # Claude on Bedrock: the service model lists `server_tool_use` only.
    claude = tool_use("tooluse_1")
    claude["toolUse"]["type"] = "tool_use"
    yield ReplyShape("bedrock", "tool_use with its type", bedrock_reply({"text": "I look."}, claude))
    yield ReplyShape("bedrock", "reasoning", bedrock_reply(thought("Hm."), {"text": "I look."}, tool_use("tooluse_1")))
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    thoughts = (thinking("Hm."), search, found, thinking("So."), _text("Found."))
    yield ReplyShape("anthropic", "thinking around a search", anthropic_reply(*thoughts))
    yield ReplyShape("anthropic", "thinking", anthropic_reply(thinking("Hm."), _text("I look."), use("toolu_1")))
    items = (reasoning("rs_1", summary="Hm."), output_text("I look.", "msg_1"), _function_call())
    for api in _RESPONSES:
        yield ReplyShape(api, "reasoning", responses_reply(*items))
        yield ReplyShape(api, "shell in a container", responses_reply(output_text("I look.", "msg_1"), *hosted_shell()))
        shells = hosted_shell(environment=None)
        yield ReplyShape(api, "shell in a container without its name", responses_reply(*shells, _function_call()))
    parts = (part_text("Hm.", thought=True), part_text("I look."), part_call(thoughtSignature="c2ln"))
    yield ReplyShape("gemini", "thought", gemini_reply(*parts))
    code = ({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}})
    parts = (part_text("Hm.", thought=True), *code, part_text("So.", thought=True), part_text("Found."))
    yield ReplyShape("gemini", "thoughts around code", gemini_reply(*parts))
    for api in ("openai-chat", "kimi", "deepseek", "qwen"):
        body = chat_reply(build.call("call_1"), content="I look.")
        body["choices"][0]["message"] |= {"reasoning_content": "Hm.", "refusal": None, "annotations": []}
        yield ReplyShape(api, "reasoning", body)
    # Snowflake sends every member of a message.
    body = chat_reply(content="I look.")
    empty = {"audio": {"data": "", "expires_at": 0, "id": "", "transcript": ""}, "refusal": "", "tool_calls": None}
    body["choices"][0]["message"] |= {**empty, "function_call": {"name": "", "arguments": ""}, "annotations": None}
    body["choices"][0]["finish_reason"] = ""
    yield ReplyShape("openai-chat", "empty members", body)
    body = chat_reply(
        {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}, content="I look.", finish="stop"
    )
    yield ReplyShape("openai-chat", "empty entry of a call", {**body, "id": ""})
    texts = [{"type": "thinking", "thinking": [_text("Hm.")], "closed": True}, _text("I look.")]
    yield ReplyShape("mistral", "thinking", chat_reply(build.call("abcdefgh1"), content=texts))


def _text(text: str) -> Body:
    return {"type": "text", "text": text}


def hosted_shell(**changes: Any) -> tuple[Body, Body]:
    action = {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}
    environment = {"type": "container_reference", "container_id": "cntr_1"}
    call = {"type": "shell_call", "id": "sh_1", "call_id": "call_s", "status": "completed", "action": action}
    outputs = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_s", "status": "completed", "output": outputs}
    return {**call, "environment": environment, **changes}, {**output, "max_output_length": None}


def _function_call() -> Body:
    return build.function_call("call_1", id="fc_1", status="completed")


# --------------------------------------------------------------------------------------------------------- sent back


def request_of(api: str) -> Body:
    """A request without a model, whose streamed reply has token counts."""
    match WIRES[api].base_api:
        case "anthropic":
            return build.anthropic({"role": "user", "content": "Go."}, model=None)
        case "bedrock":
            return build.bedrock({"role": "user", "content": [{"text": "Go."}]})
        case "gemini":
            return build.gemini({"role": "user", "parts": [{"text": "Go."}]})
        case "openai-responses":
            return build.responses(build.item("user", "Go."), model=None)
        case _:
            options = {"stream_options": {"include_usage": True}}
            return build.chat({"role": "user", "content": "Go."}, model=None, **options)


def append_reply(api: str, body: Body, reply: Body) -> Body:
    """The request with the reply appended as it came, as the API's documentation shows it."""
    match api:
        case "anthropic":
            added = {"role": "assistant", "content": reply["content"]}
            return {**body, "messages": [*body["messages"], added]}
        case "bedrock":
            return {**body, "messages": [*body["messages"], reply["output"]["message"]]}
        case "gemini":
            return {**body, "contents": [*body["contents"], reply["candidates"][0]["content"]]}
        case "openai-responses" | "azure-foundry":
            return {**body, "input": [*body["input"], *reply["output"]]}
        case _:
            return {**body, "messages": [*body["messages"], reply["choices"][0]["message"]]}


# ---------------------------------------------------------------------------------------------------------- streamed


def stream_payloads(api: str, reply: Body) -> list[Body]:
    """The events of a reply, written from the documentation, independent of the tested code."""
    match api:
        case "anthropic":
            return list(_anthropic_events(reply))
        case "bedrock":
            return list(_bedrock_events(reply))
        case "gemini":
            return list(_gemini_chunks(reply))
        case "openai-responses" | "azure-foundry":
            return responses_events.stream_events(reply)
        case _:
            return list(_chat_chunks(reply))


def encode_stream(api: str, payloads: list[Body]) -> bytes:
    if api == "bedrock":
        return bedrock_events.encode_events(*payloads)
    return sse(*payloads, named=api in ("anthropic", *_RESPONSES), done=api not in ("anthropic", "gemini", *_RESPONSES))


def _anthropic_events(reply: Body) -> Iterator[Body]:
    yield {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}
    for index, block in enumerate(reply["content"]):
        match block:
            case {"type": "text", "text": text}:
                yield anthropic_events.block_start(index, **{**block, "text": ""})
                yield anthropic_events.text_delta(index, text)
            case {"type": "thinking", "thinking": text, "signature": signature}:
                yield anthropic_events.block_start(index, **{**block, "thinking": "", "signature": ""})
                yield anthropic_events.delta(index, "thinking_delta", thinking=text)
                yield anthropic_events.delta(index, "signature_delta", signature=signature)
            case {"input": given, **rest} if rest["type"] in ("tool_use", "server_tool_use", "mcp_tool_use"):
                yield anthropic_events.block_start(index, **{**block, "input": {}})
                yield anthropic_events.input_delta(index, json.dumps(given))
            case _:
                yield anthropic_events.block_start(index, **block)
        yield anthropic_events.block_stop(index)
    yield anthropic_events.message_delta(reply["stop_reason"])
    yield anthropic_events.STOP


def _bedrock_events(reply: Body) -> Iterator[Body]:
    yield bedrock_events.START
    for index, block in enumerate(reply["output"]["message"]["content"]):
        match block:
            case {"text": text}:
                yield bedrock_events.text_delta(index, text)
            case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
                yield bedrock_events.reasoning_delta(index, text=text)
                yield bedrock_events.reasoning_delta(index, signature=signature)
            case {"toolUse": {"input": given, **rest}}:
                yield bedrock_events.block_start(index, toolUse=rest)
                yield bedrock_events.input_delta(index, json.dumps(given))
            case {"toolResult": {"content": content, **rest}}:
                yield bedrock_events.block_start(index, toolResult=rest)
                yield bedrock_events.delta(index, toolResult=content)
            case _:
                raise NotImplementedError(block)
        yield bedrock_events.block_stop(index)
    yield bedrock_events.message_stop(reply["stopReason"])
    yield bedrock_events.META


def _gemini_chunks(reply: Body) -> Iterator[Body]:
    (candidate,) = reply["candidates"]
    for part in candidate["content"]["parts"]:
        content = {"role": "model", "parts": [part]}
        yield {**reply, "candidates": [{"index": 0, "content": content}]}
    yield {**reply, "candidates": [{"index": 0, "finishReason": candidate["finishReason"]}]}


def _chat_chunks(reply: Body) -> Iterator[Body]:
    (choice,) = reply["choices"]
    message = choice["message"]
    yield chat_events.chunk({"role": "assistant", "content": ""}, model=reply["model"])
    for key in ("reasoning", "reasoning_content", "content", "refusal", "function_call"):
        if message.get(key) is not None:
            yield chat_events.chunk({key: message[key]}, model=reply["model"])
    for index, entry in enumerate(message.get("tool_calls") or ()):
        yield chat_events.calls({"index": index, **entry})
    yield {**chat_events.chunk({}, choice["finish_reason"]), "usage": reply["usage"]}
