"""Replies as the real models give them: ids, signatures, stop sequences; and stored replies."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Any

import msgspec
import openai
import pytest

from segue._stream import render_reply_body
from segue.canonical.blocks import Origin, ToolCall
from segue.canonical.request import Reply
from segue.emulator import Emulator, start
from segue.emulator.client import Response, build_request, post
from segue.wire.registry import WIRES
from tests.emulator.http_requests import TIMEOUT, HttpResult, body_of, reply_of, send_request

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["at-once", "streamed"])


def parts_of(sent: Response | HttpResult, *, stream: bool) -> list[dict[str, Any]]:
    parts = [line[6:] for line in sent.data.splitlines() if line] if stream else [sent.data]
    chunks = [msgspec.json.decode(one) for one in parts]
    return [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]


@both_ways
@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("gemini-2.0-flash", False),
        ("gemini-2.5-pro", False),
        ("gemini-3-pro-preview", True),
        ("of-my-own", True),
        (None, True),
    ],
)
def test_ids_and_signatures_match_the_requested_model(model: str | None, named: bool, stream: bool) -> None:
    body = body_of("gemini", "How is the weather in Lisbon and Oslo?", model=model)
    del body["model"]
    with start("gemini") as provider:
        parts = parts_of(post(provider, body, model=model, stream=stream), stream=stream)
        assert provider.requests[-1].model == (model or WIRES["gemini"].default_model)
        calls = [part for part in parts if "functionCall" in part]
        assert [call["functionCall"]["args"]["city"] for call in calls] == ["Lisbon", "Oslo"]
        assert ["id" in call["functionCall"] for call in calls] == [named, named]
        assert ["thoughtSignature" in call for call in calls] == [named, False]
        assert b"skip_thought" not in msgspec.json.encode(parts)
        results = [
            {"functionResponse": {**{k: v for k, v in call["functionCall"].items() if k != "args"}, "response": {}}}
            for call in calls
        ]
        more = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
        again = {**body, "contents": [*body["contents"], *more]}
        assert post(provider, again, model=model, stream=stream).status == 200


@both_ways
def test_scripted_id_is_used_by_any_model(stream: bool) -> None:
    with start("gemini", script='call[mine] get_weather {"city": "Lisbon"}') as provider:
        (part,) = parts_of(send_request(provider, model="gemini-2.5-flash", stream=stream), stream=stream)
        assert part == {"functionCall": {"id": "mine", "name": "get_weather", "args": {"city": "Lisbon"}}}


@pytest.mark.parametrize("api", ["openai-chat", "mistral", "bedrock"])
def test_request_without_model_uses_the_default(api: str) -> None:
    path, data, _ = build_request(api, {})
    assert ("/model/us.anthropic" in path or "/model/anthropic" in path) == (api == "bedrock")
    assert data == b"{}"


STOPS: dict[str, dict[str, Any]] = {
    "anthropic": {"stop_sequences": ["zebra", "can"]},
    "bedrock": {"inferenceConfig": {"stopSequences": ["zebra", "can"]}},
    "openai-chat": {"stop": ["zebra", "can"]},
    "gemini": {"generationConfig": {"stopSequences": ["zebra", "can"]}},
}


@both_ways
@pytest.mark.parametrize("api", STOPS)
def test_stop_sequence_is_reported(api: str, stream: bool) -> None:
    with start(api) as provider:
        body = {key: value for key, value in body_of(api, "What is new?").items() if key not in ("tools", "toolConfig")}
        whole = reply_of(provider, send_request(provider, body, stream=stream), stream=stream)
        seen = send_request(provider, {**body, **STOPS[api]}, stream=stream)
        cut = reply_of(provider, seen, stream=stream)
        assert cut.text == whole.text[: whole.text.index("can")]
        assert (whole.finish, cut.finish) == ("stop", "stop")
        assert cut.stop_sequence == ("can" if api == "anthropic" else None)
        causes = {"anthropic": "stop_sequence", "bedrock": "stop_sequence", "openai-chat": "stop", "gemini": "STOP"}
        assert cut.raw_finish == causes[api]
        assert whole.stop_sequence is None


# -------------------------------------------------------------------------------------------------- kept responses


@pytest.mark.parametrize(
    ("api", "path"), [("openai-responses", "/v1/responses"), ("azure-foundry", "/openai/responses")]
)
def test_a_stored_response_can_be_fetched_and_deleted(api: str, path: str) -> None:
    with start(api) as provider:
        body = body_of(api, "Hello!")
        first = post(provider, body).body
        place = f"{path}/{first['id']}"
        assert get(provider, place).body == first
        assert get(provider, place, key="another").status == 404
        again = {**body, "previous_response_id": first["id"], "input": "And you?"}
        second = post(provider, again, stream=True)
        response_id = msgspec.json.decode(second.data.split(b"data: ")[1].splitlines()[0])["response"]["id"]
        assert get(provider, f"{path}/{response_id}").body["previous_response_id"] == first["id"]
        listed = get(provider, f"{path}/{response_id}/input_items?order=asc").body
        texts = [part["text"] for item in listed["data"] for part in item["content"]]
        assert texts[0] == "Hello!"
        assert texts[-1] == "And you?"
        assert (listed["first_id"], listed["has_more"]) == (listed["data"][0]["id"], False)
        page = get(provider, f"{path}/{response_id}/input_items?limit=1").body
        assert (page["data"], page["has_more"]) == (listed["data"][-1:], True)
        rest = get(provider, f"{path}/{response_id}/input_items?after={page['last_id']}").body
        assert rest["data"] == listed["data"][-2::-1]
        gone = get(provider, place, method="DELETE")
        assert gone.body == {"id": first["id"], "object": "response", "deleted": True}
        lost = get(provider, place)
        assert (lost.status, lost.body["error"]["message"]) == (404, f"Response with id '{first['id']}' not found.")
        assert post(provider, again).status in (400, 404)
        unkept = post(provider, {**body, "store": False}).body
        assert get(provider, f"{path}/{unkept['id']}").status == 404


def test_vendor_client_reads_stored_replies() -> None:
    with start("openai-responses") as provider:
        client = openai.OpenAI(base_url=provider.base_url, api_key="k")
        made = client.responses.create(model="gpt-5", input="Hello!")
        assert client.responses.retrieve(made.id).output_text == made.output_text
        assert [item.type for item in client.responses.input_items.list(made.id)] == ["message"]
        client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)


def get(provider: Emulator, path: str, *, method: str = "GET", key: str = "segue-emulator") -> Response:
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=TIMEOUT)
    connection.request(method, path, headers={"authorization": f"Bearer {key}", "api-key": key})
    answer = connection.getresponse()
    with closing(connection):
        return Response(answer.status, dict(answer.getheaders()), answer.read())


@pytest.mark.parametrize(
    ("provider", "model", "signed"),
    [
        ("gemini", "gemini-2.5-flash", False),
        ("gemini", "gemini-3-pro-preview", True),
        ("gemini", None, True),
        ("anthropic", "claude-sonnet-4-5", True),
    ],
)
def test_a_call_that_needs_a_signature_to_be_sent_back_has_one(provider: str, model: str | None, signed: bool) -> None:
    """Of a model that signs nothing, nothing is asked."""
    call = ToolCall("f", {}, id="hist_tool_0", origin=Origin(provider, model, "c1"))
    body, _ = render_reply_body(Reply((call,), "tool_calls"), "gemini")
    assert ("thoughtSignature" in body["candidates"][0]["content"]["parts"][0]) is signed
