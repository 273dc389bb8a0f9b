"""Every reply shape of the catalogue can be sent back as it came."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

import segue
from segue.render.report import Report
from segue.wire.registry import WIRES
from tests.catalog.texts import body_strings, lines, texts
from tests.conversations.replies import responses_reply
from tests.conversations.reply_shapes import (
    ReplyShape,
    append_reply,
    encode_stream,
    hosted_shell,
    reply_shapes,
    request_of,
    stream_payloads,
)
from tests.each import for_each

Body = dict[str, Any]
every_shape = pytest.mark.parametrize("shape", reply_shapes(), ids=str)


@every_shape
def test_reply_sent_back_loses_nothing(shape: ReplyShape) -> None:
    """It converts to every API, and what does not arrive there has a finding. Home, it is sent as it came."""
    body = append_reply(shape.api, request_of(shape.api), shape.body)
    blocks = WIRES[shape.api].parse_reply(shape.body).blocks
    words = [line for block in blocks for text in texts(block) for line in lines(text)]
    for target in WIRES.keys() - {shape.api}:
        converted = segue.convert(body, source=shape.api, target=target)
        missing = [word for word in words if word not in body_strings(converted.body)]
        assert not missing or _says_what_is_lost(converted.report), (target, missing)
    for result in (segue.convert(body, source=shape.api, target=shape.api), segue.repair(body, shape.api)):
        assert _content_of(result.body) == _content_of(body) or _says_what_is_lost(result.report), shape.api


def _content_of(value: Any) -> Any:
    """A JSON value without the ids of items and without empty members, which say nothing."""
    if isinstance(value, dict):
        members = {key: _content_of(inner) for key, inner in value.items() if key != "id"}
        members = {key: inner for key, inner in members.items() if inner not in (None, "", 0, [], {})}
        return members if members.keys() - {"type"} else {}
    return [inner for inner in map(_content_of, value) if inner] if isinstance(value, list) else value


def _says_what_is_lost(report: Report) -> bool:
    return any(finding.kind != "adjusted" for finding in report.findings)


def _places(value: Any, kind: type, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values of this Python type in a JSON value."""
    if isinstance(value, kind):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from _places(inner, kind, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@every_shape
def test_values_and_fields_newer_than_the_vendors_types_are_read(shape: ReplyShape) -> None:
    """A status, a type, a format, a field that no SDK lists yet: of a reply sent back, only a role has to be known."""
    body = request_of(shape.api)
    key = WIRES[shape.api].conversation_key
    start = len(body[key])
    body = append_reply(shape.api, body, shape.body)
    for path in _places(body[key], str):
        newer = copy.deepcopy(body)
        _at(newer[key], path[:-1])[path[-1]] = "brand_new"
        if path[0] >= start and path[-1] == "role":
            with pytest.raises(segue.InputError):
                segue.repair(newer, shape.api)
        elif path[0] >= start:
            _check_read(newer, shape.api)
    for path in _places(body[key], dict):
        newer = copy.deepcopy(body)
        _at(newer[key], path)["brand_new"] = "value"
        _check_read(newer, shape.api)


@for_each("kind", [None, "tool_use", "brand_new"])
def test_a_result_with_the_type_of_claude_answers_its_call(kind: str | None) -> None:
    body = request_of("bedrock")
    call = {"toolUseId": "tooluse_1", "name": "read_file", "input": {}, **({} if kind is None else {"type": kind})}
    result = {"toolUseId": "tooluse_1", "type": "tool_result", "content": [{"text": "done"}]}
    body["messages"] += [
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]
    for repaired in (segue.convert(body, source="bedrock", target="bedrock"), segue.repair(body, "bedrock")):
        assert repaired.body == body
    sent = segue.convert(body, source="bedrock", target="anthropic").body["messages"]
    assert [block["type"] for message in sent[1:] for block in message["content"]] == ["tool_use", "tool_result"]


@for_each("environment", ["container_auto", "container_reference"])
def test_a_shell_in_any_container_is_no_call(environment: str) -> None:
    call, output = hosted_shell(environment={"type": environment})
    reply = WIRES["openai-responses"].parse_reply(responses_reply(call, output))
    assert [call.kind for call in reply.calls] == ["hosted"]
    assert reply.finish == "stop"


@for_each("execution, kind", [(None, "hosted"), ("server", "hosted"), ("client", "function")])
def test_a_tool_search_is_a_call_only_where_it_says_that_the_client_runs_it(execution: str | None, kind: str) -> None:
    item = {"type": "tool_search_call", "id": "tsc_1", "call_id": "call_1", "arguments": {"query": "files"}}
    item |= {"status": "completed", **({} if execution is None else {"execution": execution})}
    reply = WIRES["openai-responses"].parse_reply(responses_reply(item))
    assert [("hosted" if call.kind == "hosted" else "function") for call in reply.calls] == [kind]
    body = {"model": "gpt-5.6", "input": [{"role": "user", "content": "a"}, item, {"role": "user", "content": "b"}]}
    repaired = segue.repair(body, "openai-responses")
    assert (repaired.body == body) is (kind == "hosted")
    assert kind == "function" or segue.check(repaired.body, "openai-responses")


def _check_read(body: Body, api: str) -> None:
    segue.repair(body, api)
    for target in ("anthropic", "openai-chat"):
        segue.convert(body, source=api, target=target)


# --------------------------------------------------------------------------------------------------- whole and streamed


def _contents(reply: segue.Reply) -> list[Any]:
    """What a reply says, without ids and original fields; neighbouring texts are one."""
    contents: list[Any] = []
    for block in reply.blocks:
        match block:
            case segue.Text():
                entry: Any = ["text", block.text]
            case segue.Thinking():
                entry = ["thinking", block.text]
            case segue.ToolCall():
                contents.append((block.kind, block.name, block.arguments, block.broken))
                continue
            case _:
                contents.append((type(block).__name__, *texts(block)))
                continue
        if contents and contents[-1][0] == entry[0]:
            contents[-1] = [entry[0], contents[-1][1] + entry[1]]
        elif entry[1]:
            contents.append(entry)
    return contents


@every_shape
def test_whole_and_streamed_replies_agree(shape: ReplyShape) -> None:
    """In its own API and in that of every caller: the same text, reasoning, calls to run, finish and tokens."""
    payloads = stream_payloads(shape.api, shape.body)
    whole, streamed = WIRES[shape.api].parse_reply(shape.body), segue.assemble(payloads, shape.api)
    assert _contents(streamed) == _contents(whole)
    assert (streamed.finish, streamed.usage) == (whole.finish, whole.usage)
    for caller in WIRES:
        converted = segue.convert(request_of(caller), source=caller, target=shape.api)
        whole = WIRES[caller].parse_reply(converted.reply(shape.body))
        stream = converted.stream()
        streamed = segue.assemble(stream.feed(encode_stream(shape.api, payloads)) + stream.close(), caller)
        assert _contents(streamed) == _contents(whole), caller
        assert (streamed.finish, streamed.usage) == (whole.finish, whole.usage), caller


@pytest.mark.parametrize("api", ["openai-responses", "azure-foundry"])
@for_each("caller", WIRES)
def test_shell_in_a_container_is_never_a_call_to_run(api: str, caller: str) -> None:
    """Also if the reply ends before its output."""
    for name in ("shell in a container", "FunctionShellCall hosted container"):
        shape = next(shape for shape in reply_shapes() if shape.name == name)
        converted = segue.convert(request_of(caller), source=caller, target=api)
        whole = WIRES[caller].parse_reply(converted.reply(shape.body))
        stream = converted.stream()
        data = stream.feed(encode_stream(api, stream_payloads(api, shape.body))) + stream.close()
        for reply in (whole, segue.assemble(data, caller)):
            assert not [call for call in reply.calls if call.kind != "hosted"]
            assert reply.finish == "stop"
