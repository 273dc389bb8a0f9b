"""Bodies that refer to state outside of them: served from the store, sent to its holder, or rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.bridge.envelopes import EnvelopeKeys
from segue.wire.registry import WIRES
from tests.bridge.exchanges import (
    KEYS,
    MODELS,
    Answer,
    Response,
    Shell,
    endpoint,
    make_reply,
    request_body,
    streamed,
    whole,
)

TOOLS: list[Any] = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
CALL = [("call_1", "look", {"n": 1})]
OTHERS = [api for api in MODELS if api != "openai-responses"]


def create(shell: Shell, api: str, *, stream: bool = False, **fields: Any) -> tuple[Answer, Any]:
    reply = make_reply(api, thought="Hm.", calls=CALL)
    response = streamed(api, reply, 40) if stream else whole(api, reply)
    body = request_body("openai-responses", stream=stream, tools=TOOLS, **fields)
    answer = shell.run("/v1/responses", body, [response])
    assert answer.status == 200, answer.data
    if not stream:
        return answer, answer.body
    events = [json.loads(line[6:]) for line in answer.data.decode().splitlines() if line.startswith("data: ")]
    return answer, events[-1]["response"]


def follow_up(response: Any, **fields: Any) -> dict[str, Any]:
    call = next(item for item in response["output"] if item["type"] == "function_call")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "seen"}
    return {"model": "an-alias", "input": [output], "previous_response_id": response["id"], "tools": TOOLS, **fields}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MODELS)
def test_previous_response_is_served_from_the_store(api: str, stream: bool) -> None:
    shell = Shell(endpoint(api))
    _, response = create(shell, api, stream=stream)
    answer = shell.run("/v1/responses", follow_up(response), [whole(api)])
    assert answer.status == 200, answer.data
    sent = json.dumps(answer.sent_bodies[0])
    assert all(text in sent for text in ("Hello.", "Hello back.", "seen"))
    assert "previous_response_id" not in sent
    request = WIRES[api].parse_request(answer.sent_bodies[0])
    assert [type(block).__name__ for message in request.messages for block in message.blocks].count("ToolCall") == 1
    # The second response is stored with the whole history.
    third = {"model": "an-alias", "input": "Thanks.", "previous_response_id": answer.body["id"]}
    again = shell.run("/v1/responses", third, [whole(api)])
    sent = json.dumps(again.sent_bodies[0])
    assert sent.count("Hello back.") == 2
    assert "seen" in sent
    assert "Thanks." in sent


@pytest.mark.parametrize("api", OTHERS)
def test_unknown_response_is_rejected_as_the_api_documents_it(api: str) -> None:
    for shell in (Shell(endpoint(api)), Shell(endpoint(api), has_store=False)):
        answer = shell.run("/v1/responses", {"model": "m", "input": "Hi.", "previous_response_id": "resp_unknown"})
        assert answer.status == 400
        error = answer.body["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
        assert answer.sent == []


def test_response_that_was_not_to_be_stored_is_not_found() -> None:
    shell = Shell(endpoint("anthropic"))
    _, response = create(shell, "anthropic", store=False)
    assert shell.run("/v1/responses", follow_up(response)).status == 400
    assert shell.run(f"/v1/responses/{response['id']}", method="GET").status == 404


@pytest.mark.parametrize("api", OTHERS)
@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_conversation_is_rejected(api: str, conversation: Any) -> None:
    answer = Shell(endpoint(api)).run("/v1/responses", {"model": "m", "input": "Hi.", "conversation": conversation})
    assert answer.status == 404
    assert answer.body["error"]["param"] == "conversation"
    assert answer.sent == []


def test_reference_goes_to_the_targets_of_its_own_api_only() -> None:
    """A body with a reference has not the whole history, so no other API can take it over."""
    body = {"model": "m", "input": "Hi.", "previous_response_id": "resp_unknown"}
    failed = Response([b'{"error": {"message": "No.", "type": "server_error"}}'], 500)
    shell = Shell(endpoint("openai-responses"), endpoint("anthropic", 1), endpoint("openai-responses", 2))
    answer = shell.run("/v1/responses", body, [failed, whole("openai-responses")])
    assert answer.status == 200
    assert [request.url.split("/")[2] for request in answer.sent] == ["host0.example", "host2.example"]
    assert all(sent["previous_response_id"] == "resp_unknown" for sent in answer.sent_bodies)
    alone = Shell(endpoint("openai-responses"), endpoint("anthropic", 1)).run("/v1/responses", body, [failed])
    assert alone.status == 500


@pytest.mark.parametrize("api", [api for api in MODELS if api != "anthropic"])
@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
def test_thread_is_rejected_so_that_the_sdk_sends_the_whole_history(api: str, thread: Any) -> None:
    answer = Shell(endpoint(api)).run("/v1/messages", request_body("anthropic", thread=thread))
    assert answer.status == 400
    assert answer.body["type"] == "error"
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert answer.body["error"]["details"]["error_code"] == "thread_unsupported_request"
    assert answer.sent == []


def test_thread_is_rejected_if_a_target_has_another_api() -> None:
    """The SDK sends the whole history then, and each target can answer."""
    shell = Shell(endpoint("anthropic"), endpoint("gemini", 1))
    answer = shell.run("/v1/messages", request_body("anthropic", thread={"type": "create"}))
    assert answer.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_thread_goes_to_its_own_api() -> None:
    answer = Shell(endpoint("anthropic")).run(
        "/v1/messages", request_body("anthropic", thread={"type": "create"}), [whole("anthropic")]
    )
    assert answer.status == 200
    assert answer.sent_bodies[0]["thread"] == {"type": "create"}


# ----------------------------------------------------------------------------------------------------- stored responses


def test_stored_response_is_retrieved_listed_and_deleted() -> None:
    shell = Shell(endpoint("gemini"))
    _, response = create(shell, "gemini")
    path = f"/v1/responses/{response['id']}"
    assert shell.run(path, method="GET").body == response
    items = shell.run(f"{path}/input_items", method="GET").body
    assert (items["object"], items["has_more"]) == ("list", False)
    assert [item["content"] for item in items["data"]] == ["Hello."]
    assert items["first_id"] == items["data"][0]["id"]
    deleted = shell.run(path, method="DELETE").body
    assert deleted == {"id": response["id"], "object": "response", "deleted": True}
    for suffix, method in (("", "GET"), ("/input_items", "GET"), ("", "DELETE")):
        gone = shell.run(path + suffix, method=method)
        assert gone.status == 404
        assert response["id"] in gone.body["error"]["message"]
    assert shell.run("/v1/responses", follow_up(response)).status == 400


def test_stored_response_outlives_a_key_rotation() -> None:
    old = Shell(endpoint("gemini"))
    _, response = create(old, "gemini")
    rotated = Shell(endpoint("gemini"), keys=EnvelopeKeys(b"n" * 32, KEYS.current), memory=old.memory)
    assert rotated.run("/v1/responses", follow_up(response), [whole("gemini")]).status == 200
    path = f"/v1/responses/{response['id']}"
    assert rotated.run(path, method="GET").body == response
    assert rotated.run(path, method="DELETE").status == 200
    assert rotated.run(path, method="GET").status == 404
    forgotten = Shell(endpoint("gemini"), keys=EnvelopeKeys(b"n" * 32), memory=old.memory)
    assert forgotten.run(path, method="GET").status == 404


def test_failed_response_is_not_stored() -> None:
    shell = Shell(endpoint("gemini"))
    data = streamed("gemini").chunks[0]
    answer = shell.run("/v1/responses", request_body("openai-responses", stream=True), [Response([data[:-150]])])
    created = next(json.loads(line[6:]) for line in answer.data.decode().splitlines() if line.startswith("data: "))
    assert shell.run(f"/v1/responses/{created['response']['id']}", method="GET").status == 404


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MODELS)
def test_references_to_items_are_served_from_the_store(api: str, stream: bool) -> None:
    shell = Shell(endpoint(api))
    _, response = create(shell, api, stream=stream)
    references = [{"type": "item_reference", "id": item["id"]} for item in response["output"]]
    body = {key: value for key, value in follow_up(response).items() if key != "previous_response_id"}
    answer = shell.run("/v1/responses", {**body, "input": [*references, *body["input"]]}, [whole(api)])
    assert answer.status == 200, answer.data
    sent = json.dumps(answer.sent_bodies[0])
    assert all(text in sent for text in ("Hello back.", "seen", "look"))
    assert "item_reference" not in sent
    request = WIRES[api].parse_request(answer.sent_bodies[0])
    assert [type(block).__name__ for message in request.messages for block in message.blocks].count("ToolCall") == 1


@pytest.mark.parametrize("api", OTHERS)
def test_an_unknown_item_is_rejected_as_the_api_documents_it(api: str) -> None:
    items = [{"type": "item_reference", "id": "msg_unknown"}, {"role": "user", "content": "Hi."}]
    for shell in (Shell(endpoint(api)), Shell(endpoint(api), has_store=False)):
        answer = shell.run("/v1/responses", {"model": "m", "input": items})
        assert answer.status == 404
        assert answer.body["error"]["message"] == "Item with id 'msg_unknown' not found."
        assert answer.sent == []


def test_an_unknown_item_is_sent_to_the_api_that_may_have_it() -> None:
    items = [{"type": "item_reference", "id": "msg_unknown"}, {"role": "user", "content": "Hi."}]
    answer = Shell(endpoint("openai-responses")).run(
        "/v1/responses", {"model": "m", "input": items}, [whole("openai-responses")]
    )
    assert answer.sent_bodies[0]["input"] == items
