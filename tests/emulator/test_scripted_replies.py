"""Scripts over HTTP: each client gets the scripted reply, streamed or whole."""

from __future__ import annotations

import http.client
import re
from typing import Any

import msgspec
import pytest

import segue
from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Request
from segue.emulator import Emulator, start
from segue.emulator.steps import ReplySteps, TextStep
from segue.wire.registry import WIRES
from tests.emulator.http_requests import (
    APIS,
    TIMEOUT,
    TOOLS,
    body_of,
    conversation,
    open_response,
    reply_of,
    send_request,
)

# The default models of these show what they think, or a summary of it, to who asks.
SHOWS_THOUGHTS = {"anthropic", "bedrock", "gemini", "openai-responses", "azure-foundry", "qwen"}
every_api = pytest.mark.parametrize("api", APIS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["at-once", "streamed"])

WHOLE = """
think  Two lookups, none needs the other.
say    Let me look; grüß Gott, 天気 and \\"quotes\\".
call   get_weather {"city": "Lisbon", "days": 3, "deep": {"list": [1, null, true, 0.5]}}
call   get_time {"zone": "Europe/Lisbon"}
call   get_weather {}
"""


def request_reply(
    emulator: Emulator, body: dict[str, Any] | None = None, *, stream: bool, thinks: bool = False
) -> Reply:
    seen = send_request(emulator, body or body_of(emulator.api, thinks=thinks), stream=stream)
    assert (seen.status, seen.exception) == (200, None), seen.data
    return reply_of(emulator, seen, stream=stream)


def summarize_reply(reply: Reply) -> list[Any]:
    """The text and calls of a reply, without ids."""

    def summarize_block(block: Block) -> Any:
        match block:
            case Text():
                return ("says", block.text)
            case Thinking():
                return ("thinks", block.text)
            case ToolCall():
                return ("calls", block.name, block.arguments, block.arguments_text)
            case _:
                return block

    return [summarize_block(block) for block in reply.blocks if not isinstance(block, Thinking) or block.text]


# ------------------------------------------------------------------------------------------------------------ the reply


@both_ways
@every_api
def test_text_thoughts_and_calls(api: str, *, stream: bool) -> None:
    with start(api, script=WHOLE) as emulator:
        reply = request_reply(emulator, stream=stream, thinks=True)
    shown = [("thinks", "Two lookups, none needs the other.")] if api in SHOWS_THOUGHTS else []
    assert summarize_reply(reply) == [
        *shown,
        ("says", 'Let me look; grüß Gott, 天気 and \\"quotes\\".'),
        ("calls", "get_weather", {"city": "Lisbon", "days": 3, "deep": {"list": [1, None, True, 0.5]}}, None),
        ("calls", "get_time", {"zone": "Europe/Lisbon"}, None),
        ("calls", "get_weather", {}, None),
    ]
    assert reply.finish == "tool_calls"
    assert len({call.raw_id for call in reply.calls}) == 3
    assert emulator.requests[0].calls == ("get_weather", "get_time", "get_weather")


@every_api
def test_stream_equals_the_whole_reply(api: str) -> None:
    """Ids alone differ: the requests do."""
    replies: list[Reply] = []
    for stream in (False, True):
        with start(api, script=WHOLE) as emulator:
            replies.append(request_reply(emulator, stream=stream, thinks=True))
    at_once, streamed = replies
    assert summarize_reply(streamed) == summarize_reply(at_once)
    assert streamed.finish == at_once.finish
    assert streamed.model == at_once.model
    assert streamed.created == at_once.created
    assert [type(block) for block in streamed.blocks] == [type(block) for block in at_once.blocks]
    assert [_style(call.raw_id) for call in streamed.calls] == [_style(call.raw_id) for call in at_once.calls]
    if api != "bedrock":  # which has none in the body
        assert _style(streamed.id) == _style(at_once.id)
    seals = [
        [(bool(block.signature), bool(block.encrypted)) for block in one.blocks if isinstance(block, Thinking)]
        for one in replies
    ]
    assert seals[0] == seals[1]


def _style(name: str | None) -> object:
    """The form of an id: its prefix and its length."""
    found = re.match(r"(functions\.\w+|toolu|tooluse|call|chatcmpl|msg|resp|caresp)(?=[:_-])", name or "")
    return found and found[1], len(name or "")


@every_api
def test_built_in_model_streams_the_same_reply(api: str) -> None:
    replies: list[Reply] = []
    for stream in (False, True):
        with start(api) as emulator:
            replies.append(request_reply(emulator, stream=stream, thinks=True))
    assert summarize_reply(replies[0]) == summarize_reply(replies[1])
    assert [call.name for call in replies[0].calls] == ["get_weather"]


@both_ways
@every_api
def test_ids_on_order(api: str, *, stream: bool) -> None:
    wanted = {"mistral": "abcdef123", "kimi": "functions.get_weather:7"}.get(api, "call_mine-1")
    with start(api, script=f"call[{wanted}] get_weather {{}}\ncall get_time {{}}") as emulator:
        first, second = request_reply(emulator, stream=stream).calls
    assert first.raw_id == wanted
    assert second.raw_id not in (None, wanted)


@both_ways
@every_api
def test_an_id_that_the_api_would_never_give(api: str, *, stream: bool) -> None:
    with start(api, script="call[ü |x/ 1] get_weather {}") as emulator:
        (call,) = request_reply(emulator, stream=stream).calls
    assert call.raw_id == "ü |x/ 1"


@both_ways
@every_api
def test_waits_before_and_between_spoil_nothing(api: str, *, stream: bool) -> None:
    script = "wait 0.01\nwait 0.01\nsay One,\nwait 0.01\nsay two.\nwait 0.01\ncall get_time {}\nwait 0.01"
    with start(api, script=script) as emulator:
        reply = request_reply(emulator, stream=stream)
    assert reply.text.replace("\n", "").replace(" ", "") == "One,two."
    assert [call.name for call in reply.calls] == ["get_time"]


@both_ways
@every_api
def test_empty_reply(api: str, *, stream: bool) -> None:
    with start(api, script="say") as emulator:
        reply = request_reply(emulator, stream=stream)
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


@both_ways
@every_api
def test_reply_with_reasoning_only(api: str, *, stream: bool) -> None:
    """Where it is not shown, there is nothing at all: that too is a reply."""
    with start(api, script="think Hm.") as emulator:
        reply = request_reply(emulator, stream=stream)
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


@both_ways
@every_api
def test_several_texts(api: str, *, stream: bool) -> None:
    with start(api, script="say First.\ncall get_time {}\nsay Second.") as emulator:
        reply = request_reply(emulator, stream=stream)
    assert reply.text.index("First.") < reply.text.index("Second.")
    assert len(reply.calls) == 1


@both_ways
@every_api
def test_non_json_arguments_are_unchanged(api: str, *, stream: bool) -> None:
    with start(api, script='call get_weather {"city": "Lis\nend length') as emulator:
        reply = request_reply(emulator, stream=stream)
    (call,) = reply.calls
    assert reply.finish == "length"
    objects = api == "gemini" or (not stream and api in ("anthropic", "bedrock"))
    assert (call.arguments, call.arguments_text) == (({}, None) if objects else (None, '{"city": "Lis'))


@both_ways
@every_api
def test_arguments_that_are_no_object(api: str, *, stream: bool) -> None:
    with start(api, script="call get_weather [1, 2]") as emulator:
        (call,) = request_reply(emulator, stream=stream).calls
    wrapped = api in ("gemini", "anthropic", "bedrock")
    assert call.arguments == ({"value": [1, 2]} if wrapped else [1, 2])


@both_ways
def test_client_run_tools_of_the_api_have_calls_of_their_own_type(*, stream: bool) -> None:
    search = {
        "type": "tool_search",
        "execution": "client",
        "description": "Finds tools.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    body = {"model": "gpt-5.6-terra", "input": "Hello", "tools": [search]}
    with start("openai-responses", script='call tool_search {"query": "tides"}') as emulator:
        reply = request_reply(emulator, body, stream=stream)
    (call,) = reply.calls
    assert (call.name, call.arguments) == ("tool_search", {"query": "tides"})
    assert call.native is not None
    assert call.native.fragment["type"] == "tool_search_call"


def test_free_text_input_for_a_custom_tool() -> None:
    for api in ("openai-chat", "openai-responses"):
        plain = {"type": "custom", "name": "run_code", "description": "Run it."}
        declared = plain if api == "openai-responses" else {"type": "custom", "custom": {"name": "run_code"}}
        body = {**body_of(api), "tools": [declared]}
        for stream in (False, True):
            with start(api, script="call run_code print('x')  # kept") as emulator:
                (call,) = request_reply(emulator, body, stream=stream).calls
            assert (call.kind, call.arguments) == ("custom", "print('x')  # kept")


# ----------------------------------------------------------------------------------------------------------- the finish


@both_ways
@every_api
@pytest.mark.parametrize("end", ["stop", "length", "filter", "pause"])
def test_ends(api: str, end: str, *, stream: bool) -> None:
    with start(api, script=f"say Well.\nend {end}") as emulator:
        reply = request_reply(emulator, stream=stream)
    # Only Anthropic pauses. Elsewhere a reply was too long, or (Bedrock) is simply over.
    paused = {"anthropic": "pause", "bedrock": "stop", "gemini": "length"}.get(api, "length")
    assert reply.finish == (paused if end == "pause" else end)
    assert reply.text == "Well."
    if api == "anthropic":
        words = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal", "pause": "pause_turn"}
        assert reply.raw_finish == words[end]


# --------------------------------------------------------------------------------------------------------------- errors


@both_ways
@every_api
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 529, 418, 499])
def test_error_before_text_is_the_response(api: str, status: int, *, stream: bool) -> None:
    with start(api, script=f"error {status} Not now. (retry after 2.5)\n---\nerror {status}") as emulator:
        seen, plain = send_request(emulator, stream=stream), send_request(emulator, stream=stream)
        assert request_reply(emulator, stream=stream).calls
    assert (seen.status, plain.status) == (status, status)
    assert (seen.headers["retry-after"], "retry-after" in plain.headers) == ("2.5", False)
    wire = WIRES[api]
    assert wire.parse_error(status, seen.json).message == "Not now."
    own = wire.parse_error(status, plain.json)
    assert own.message not in ("", "Not now.")
    assert own.status == status


@every_api
@pytest.mark.parametrize("status", [429, 500, 529])
def test_stream_error_has_the_api_format(api: str, status: int) -> None:
    with start(api, script=f"say Let me\ncall get_time {{}}\nerror {status} Oh dear.") as emulator:
        seen = send_request(emulator, stream=True)
        record = emulator.requests[0]
    assert (seen.status, seen.exception) == (200, None)
    reply = segue.assemble(seen.data, api)
    assert (reply.text, reply.finish, reply.raw_finish) == ("Let me", "error", "Oh dear.")
    assert b"Oh dear." in seen.data
    # In the API's own way.
    marks = {
        "anthropic": b"event: error\n",
        "bedrock": b":exception-type",
        "openai-responses": b"event: response.failed\n",
        "azure-foundry": b"event: response.failed\n",
        "mistral": b'"object":"error"',
        "gemini": b'\n\n{\n  "error": {\n',
    }
    assert marks.get(api, b'data: {"error":{') in seen.data
    assert b"[DONE]" not in seen.data
    assert record.calls == ("get_time",)


@every_api
def test_error_after_text_replaces_a_whole_reply(api: str) -> None:
    with start(api, script="say Let me\nerror 500 Oh dear.") as emulator:
        seen = send_request(emulator)
    assert seen.status == 500
    assert WIRES[api].parse_error(500, seen.json).message == "Oh dear."


def test_an_error_in_a_stream_of_gemini_that_is_a_list() -> None:
    emulator = start("gemini", script="say Let me\nerror 500 Oh dear.")
    with emulator, open_response(emulator, stream=True, without="?alt=sse") as answer:
        entries = msgspec.json.decode(answer.read())
    assert entries[-1]["error"]["message"] == "Oh dear."


# ----------------------------------------------------------------------------------------------------------------- cuts


@every_api
def test_cut_stream_ends_without_end_event(api: str) -> None:
    with start(api, script="say This will be cut o\ncut") as emulator:
        seen = send_request(emulator, stream=True)
    assert (seen.status, seen.exception) == (200, None)
    reply = segue.assemble(seen.data, api)
    assert reply.text == "This will be cut o"
    assert reply.finish == "error"


@every_api
def test_a_stream_that_is_cut_with_its_connection(api: str) -> None:
    with start(api, script="say This will be cut o\ncut reset") as emulator:
        seen = send_request(emulator, stream=True)
    assert isinstance(seen.exception, ConnectionResetError)
    assert segue.assemble(seen.data, api).text == "This will be cut o"


@every_api
def test_a_cut_call_is_broken(api: str) -> None:
    with start(api, script='say Now.\ncall get_weather {"city": "Lis\ncut') as emulator:
        reply = segue.assemble(send_request(emulator, stream=True).data, api)
    assert reply.finish == "error"
    if api not in ("gemini", "mistral"):  # which tell a call at once
        assert [(call.broken, call.arguments_text) for call in reply.calls] == [(True, '{"city": "Lis')]


def test_a_cut_free_text_call_is_broken() -> None:
    for api, tool in (
        ("openai-chat", {"type": "custom", "custom": {"name": "run_code"}}),
        ("openai-responses", {"type": "custom", "name": "run_code"}),
    ):
        with start(api, script="say Now.\ncall run_code print(\ncut") as emulator:
            reply = segue.assemble(send_request(emulator, {**body_of(api), "tools": [tool]}, stream=True).data, api)
        assert [(call.broken, call.arguments_text) for call in reply.calls] == [(True, "print(")]


@every_api
def test_cut_whole_reply(api: str) -> None:
    with start(api, script="say Hello there.\ncut\n---\nsay Hello there.\ncut reset") as emulator:
        cut, reset = send_request(emulator), send_request(emulator)
    assert (cut.status, cut.exception) == (200, None)
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(cut.data)
    assert isinstance(reset.exception, ConnectionResetError)
    assert int(reset.headers["content-length"]) > len(reset.data) > 0


# -------------------------------------------------------------------------------------------------------- several turns


@both_ways
@every_api
def test_results_are_put_in_and_the_model_goes_on_after_the_script(api: str, *, stream: bool) -> None:
    script = (
        'call get_weather {"city": "Lisbon"}\ncall get_time {"zone": "UTC"}\n'
        "---\nsay It is {get_weather} at {get_time}; {unknown} {{kept}}."
    )
    chat = conversation()
    with start(api, script=script) as emulator:

        def step() -> Reply:
            seen = send_request(emulator, body_of(api, chat), stream=stream)
            assert seen.status == 200, seen.data
            return chat.add_reply(segue.assemble(seen.data, api) if stream else seen.json)

        for call, result in zip(step().calls, ["sunny", "noon"], strict=True):
            chat.add_result(call, result)
        assert step().text == "It is sunny at noon; {unknown} {kept}."
        chat.add_user("And how is the weather in Oslo?")
        after = step()
        assert [(call.name, call.arguments) for call in after.calls] == [("get_weather", {"city": "Oslo"})]
        chat.add_result(after.calls[0], "snow")
        assert "snow" in step().text
        assert all(record.accepted for record in emulator.requests)


# ------------------------------------------------------------------------------------------------------------- the seed


def _conversation_bytes(api: str, seed: int) -> list[tuple[bytes, dict[str, str]]]:
    body = body_of(api, thinks=True)
    with start(api, script=WHOLE, seed=seed) as emulator:
        seen = [send_request(emulator, body, stream=stream) for stream in (False, True, True, False)]
    hidden = {"date"}
    return [(one.data, {name: value for name, value in one.headers.items() if name not in hidden}) for one in seen]


@every_api
def test_one_seed_gives_the_same_bytes_in_two_servers_and_another_seed_other_ids(api: str) -> None:
    once, again, other = (_conversation_bytes(api, seed) for seed in (7, 7, 8))
    assert once == again
    for (data, headers), (changed, others) in zip(once, other, strict=True):
        if api != "kimi":  # whose ids follow from the calls before
            assert data != changed
        if api != "gemini":  # which names no request
            assert headers != others
    # The same request asked again is another one.
    assert once[1] != once[2]


@every_api
def test_requests_of_others_do_not_change_ones_ids(api: str) -> None:
    body = body_of(api)
    with start(api) as emulator:
        alone = send_request(emulator, body).json
    with start(api) as emulator:
        send_request(emulator, body_of(api, "Something else entirely."))
        later = send_request(emulator, body).json
    assert _ids(alone) == _ids(later)


def _ids(value: Any) -> list[str]:
    match value:
        case dict():
            return [
                found
                for key, inner in value.items()
                for found in ([inner] if key in ("id", "call_id", "toolUseId") else _ids(inner))
            ]
        case list():
            return [found for inner in value for found in _ids(inner)]
        case _:
            return []


# ------------------------------------------------------------------------------------------------------------- odd ways


def test_lenient_provider_replies_and_reports_violations() -> None:
    body = {**body_of("anthropic"), "messages": [{"role": "assistant", "content": "Me first."}]}
    with start("anthropic", strict=False) as emulator:
        assert send_request(emulator, {**body, "model": "no-such-model"}, key=None).status == 200
        assert emulator.requests[0].accepted


@every_api
@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"\0" * 9, b'{"a":' * 5000 + b"1" + b"}" * 5000]
)
def test_invalid_request_is_rejected_without_bug(api: str, body: bytes) -> None:
    with start(api) as emulator:
        seen = send_request(emulator, body, model="any" if api in ("gemini", "bedrock") else None)
    assert 400 <= seen.status < 500, seen.data
    assert emulator.requests[0].refused


@every_api
def test_deep_arguments_are_sent_or_rejected(api: str) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    body = body_of(api)
    for entry in body.get("tools", []) if isinstance(body.get("tools"), list) else []:
        entry["x-deep"] = deep
    with start(api, strict=False) as emulator:
        seen = send_request(emulator, body)
    assert seen.status < 500, seen.data


@every_api
def test_paths_that_lead_nowhere(api: str) -> None:
    with start(api) as emulator:
        connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=TIMEOUT)
        for method, path in [("GET", "/"), ("POST", "/v1/nothing"), ("PUT", "/%ff%00?key=secret"), ("DELETE", "//")]:
            connection.request(method, path)
            answer = connection.getresponse()
            data = answer.read()
            assert 400 <= answer.status < 500
            assert b"secret" not in data
        connection.close()
    assert len(emulator.requests) == 4
    assert "secret" not in str(emulator.requests)


def test_tools_here_are_what_the_scripts_call() -> None:
    assert [tool["function"]["name"] for tool in TOOLS] == ["get_weather", "get_time"]


def test_message_start_has_the_tokens_of_the_prompt() -> None:
    chat = conversation("How is the weather in Lisbon? " * 800)
    with start("anthropic") as emulator:
        body = {**body_of("anthropic", chat), "stream": True, "cache_control": {"type": "ephemeral"}}
        sent_data = [send_request(emulator, body).data for _ in range(2)]
    lines = [[line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")] for data in sent_data]
    events = [[msgspec.json.decode(line) for line in sent] for sent in lines]
    begun = [sent[0]["message"]["usage"] for sent in events]
    ended = [sent[-2]["usage"] for sent in events]
    for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        assert [usage[name] for usage in begun] == [usage[name] for usage in ended]
    assert [usage["output_tokens"] for usage in begun] == [1, 1]
    assert begun[0]["cache_creation_input_tokens"] == begun[1]["cache_read_input_tokens"] > 5000


def test_a_script_can_be_a_function_of_the_request() -> None:
    def reply_to(request: Request) -> ReplySteps | None:
        return (TextStep(f"{len(request.messages)} message."),) if request.tools else None

    with start("anthropic", script=reply_to) as emulator:
        assert request_reply(emulator, stream=True).text == "1 message."
        without_tools = {key: value for key, value in body_of("anthropic").items() if key != "tools"}
        assert request_reply(emulator, without_tools, stream=True).text != "1 message."


def test_the_record_counts_thoughts() -> None:
    with start("anthropic", script="think One.\nsay Hello.\n---\nsay Hello.") as emulator:
        for _ in range(2):
            request_reply(emulator, stream=True, thinks=True)
        assert [record.thoughts for record in emulator.requests] == [1, 0]
