"""Bodies that refer to state outside of them: served from the store, sent to its holder, or rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.provider_errors import TransportError
from segue.render.report import Report
from segue.reply import render_reply
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
def test_without_a_store_a_thread_is_rejected_so_that_the_sdk_sends_the_whole_history(api: str, thread: Any) -> None:
    answer = Shell(endpoint(api), has_store=False).run("/v1/messages", request_body("anthropic", thread=thread))
    assert answer.status == 400
    assert answer.body["type"] == "error"
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert answer.body["error"]["details"]["error_code"] == "thread_unsupported_request"
    assert answer.sent == []


def test_without_a_store_a_thread_is_rejected_if_a_target_has_another_api() -> None:
    """The SDK sends the whole history then, and each target can answer."""
    shell = Shell(endpoint("anthropic"), endpoint("gemini", 1), has_store=False)
    answer = shell.run("/v1/messages", request_body("anthropic", thread={"type": "create"}))
    assert answer.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_without_a_store_a_thread_goes_to_its_own_api() -> None:
    answer = Shell(endpoint("anthropic"), has_store=False).run(
        "/v1/messages", request_body("anthropic", thread={"type": "create"}), [whole("anthropic")]
    )
    assert answer.status == 200
    assert answer.sent_bodies[0]["thread"] == {"type": "create"}


@pytest.mark.parametrize("reference", [{"previous_response_id": "resp_theirs"}, {"conversation": "conv_theirs"}])
def test_reply_to_a_history_that_is_not_stored_is_not_stored_either(reference: Any) -> None:
    """What is stored of it would be its last items only; the next request must go to the holder too."""
    shell = Shell(endpoint("openai-responses"))
    answer = shell.run("/v1/responses", {"model": "m", "input": "Hi.", **reference}, [whole("openai-responses")])
    following = {"model": "m", "input": "And?", "previous_response_id": answer.body["id"]}
    again = shell.run("/v1/responses", following, [whole("openai-responses")])
    assert again.sent_bodies[0]["previous_response_id"] == answer.body["id"]
    assert shell.run(f"/v1/responses/{answer.body['id']}", method="GET").status == 404


# -------------------------------------------------------------------------------------------------------- conversations

WEATHER = {"role": "user", "content": "It rains."}


def conversation(shell: Shell, **fields: Any) -> str:
    answer = shell.run("/v1/conversations", fields)
    assert answer.status == 200, answer.data
    return answer.body["id"]


def listed(shell: Shell, name: str, query: str = "?order=asc") -> Any:
    return shell.run(f"/v1/conversations/{name}/items{query}", method="GET").body


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MODELS)
def test_conversation_is_continued_and_appended_to(api: str, stream: bool, store: bool) -> None:
    shell = Shell(endpoint(api))
    name = conversation(shell, items=[WEATHER], metadata={"topic": "rain"})
    _, response = create(shell, api, stream=stream, conversation={"id": name}, store=store)
    assert response["conversation"] == {"id": name}
    call = next(item for item in response["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "seen"}
    body = {"model": "an-alias", "input": [result], "conversation": name, "tools": TOOLS, "store": store}
    answer = shell.run("/v1/responses", body, [whole(api)])
    assert answer.body["conversation"] == {"id": name}
    sent = json.dumps(answer.sent_bodies[0])
    texts = ("It rains.", "Hello.", "Hello back.", "seen", "conversation")
    assert [sent.count(text) for text in texts] == [1, 1, 1, 1, 0]
    history = [WEATHER, {"role": "user", "content": "Hello."}, *response["output"], result]
    body = {"model": "an-alias", "input": history, "tools": TOOLS, "store": store}
    assert shell.run("/v1/responses", body, [whole(api)]).sent_bodies == answer.sent_bodies
    kinds = [item["type"] for item in listed(shell, name)["data"] if item["type"] != "reasoning"]
    assert kinds == ["message", "message", "message", "function_call", "function_call_output", "message"]
    read = shell.run(f"/v1/conversations/{name}", method="GET").body
    assert (read["id"], read["object"], read["metadata"]) == (name, "conversation", {"topic": "rain"})
    stored = shell.run(f"/v1/responses/{response['id']}", method="GET").status
    assert stored == (200 if store else 404)


def test_failed_response_is_not_appended() -> None:
    shell = Shell(endpoint("gemini"))
    name = conversation(shell, items=[WEATHER])
    before = listed(shell, name)
    body = {"model": "m", "input": "Hi.", "conversation": name}
    failed = Response([b'{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}'], 400)
    assert shell.run("/v1/responses", body, [failed]).status == 400
    cut = Response([streamed("gemini").chunks[0][:-150]])
    shell.run("/v1/responses", {**body, "stream": True}, [cut])
    assert listed(shell, name) == before


def test_items_of_a_conversation_are_added_listed_in_pages_and_deleted() -> None:
    shell = Shell(endpoint("gemini"))
    name = conversation(shell)
    assert listed(shell, name) == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    path = f"/v1/conversations/{name}"
    texts = ["One.", "Two.", "Three."]
    for text in texts:
        added = shell.run(f"{path}/items", {"items": [{"role": "user", "content": text}]}).body
        assert [item["content"] for item in added["data"]] == [[{"type": "input_text", "text": text}]]

    def page(query: str) -> tuple[list[str], bool]:
        body = listed(shell, name, query)
        return [item["content"][0]["text"] for item in body["data"]], body["has_more"]

    assert page("") == (texts[::-1], False)
    assert page("?order=asc&limit=2") == (texts[:2], True)
    last = listed(shell, name, "?order=asc&limit=2")["last_id"]
    assert page(f"?order=asc&after={last}") == (texts[2:], False)
    for query in ("?limit=0", "?limit=101", "?limit=x", "?after=item_unknown"):
        assert shell.run(f"{path}/items{query}", method="GET").status == 400
    assert shell.run(path, method="DELETE").body == {"id": name, "object": "conversation.deleted", "deleted": True}
    requests: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("GET", f"{path}/items", None),
        ("POST", f"{path}/items", {"items": []}),
        ("DELETE", path, None),
        ("POST", "/v1/responses", {"model": "m", "input": "Hi.", "conversation": name}),
    ]
    for method, gone, body in requests:
        error = shell.run(gone, body, method=method)
        assert error.status == 404
        assert error.body["error"]["code"] == "conversation_not_found"


def test_bad_items_and_metadata_name_their_place() -> None:
    shell = Shell(endpoint("gemini"))
    name = conversation(shell)
    bad: list[tuple[Any, str]] = [
        ({"items": "Hi."}, "items"),
        ({"items": [WEATHER, 7]}, "items[1]"),
        ({"items": [{"role": 7}]}, "items[0]"),
    ]
    for body, place in [*bad, ({"metadata": 7}, "metadata")]:
        error = shell.run("/v1/conversations", body)
        assert (error.status, error.body["error"]["param"][: len(place)]) == (400, place)
    for body, place in [*bad, ({}, "items")]:
        error = shell.run(f"/v1/conversations/{name}/items", body)
        assert (error.status, error.body["error"]["param"][: len(place)]) == (400, place)
    assert listed(shell, name)["data"] == []


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("given", ["conv_1", {"id": "conv_1"}, {}])
@pytest.mark.parametrize("api", OTHERS)
def test_unknown_conversation_is_rejected(api: str, given: Any, has_store: bool) -> None:
    shell = Shell(endpoint(api), has_store=has_store)
    answer = shell.run("/v1/responses", {"model": "m", "input": "Hi.", "conversation": given})
    assert answer.status == 404
    error = answer.body["error"]
    assert (error["code"], error["param"]) == ("conversation_not_found", "conversation")
    assert answer.sent == []


def test_conversation_of_another_client_is_unknown() -> None:
    shell = Shell(endpoint("gemini"))
    made = shell.run("/v1/conversations", {"items": [WEATHER]}, client="ada").body["id"]
    body = {"model": "m", "input": "Hi.", "conversation": made}
    assert shell.run("/v1/responses", body, client="bob").status == 404
    assert shell.run(f"/v1/conversations/{made}", method="GET", client="bob").status == 404
    assert shell.run("/v1/responses", body, [whole("gemini")], client="ada").status == 200


@pytest.mark.parametrize("api", MODELS)
def test_conversation_and_previous_response_exclude_each_other(api: str) -> None:
    shell = Shell(endpoint(api))
    body = {"model": "m", "input": "Hi.", "conversation": conversation(shell), "previous_response_id": "resp_1"}
    error = shell.run("/v1/responses", body).body["error"]
    assert (error["code"], error["param"]) == ("mutually_exclusive_parameters", "conversation")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MODELS)
def test_response_repeats_the_id_of_the_previous_one(api: str, stream: bool) -> None:
    shell = Shell(endpoint(api))
    _, first = create(shell, api)
    _, second = create(shell, api, stream=stream, previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]
    assert "conversation" not in second


@pytest.mark.parametrize("counting", ["upstream", "estimate"])
def test_tokens_of_a_history_are_counted_with_it(counting: Any) -> None:
    shell = Shell(endpoint("openai-responses"), token_counting=counting)
    name = conversation(shell, items=[{"role": "user", "content": "It rains. " * 400}])
    _, response = create(shell, "openai-responses", conversation=name)
    for reference in ({"conversation": name}, {"previous_response_id": response["id"]}):
        body = {"model": "m", "input": "And?", **reference}
        counted = Response([b'{"object":"response.input_tokens","input_tokens":999}'])
        answer = shell.run("/v1/responses/input_tokens", body, [counted])
        assert answer.body["input_tokens"] >= 999
        assert all(sent["input"][0]["content"].startswith("It rains.") for sent in answer.sent_bodies)
        assert len(answer.sent) == (counting == "upstream")


# -------------------------------------------------------------------------------------------------------------- threads

SYSTEM, LOOK = "You look.", [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]


def send_thread(
    shell: Shell, api: str, thread: Any, messages: list[Any], *, stream: bool = False, **fields: Any
) -> tuple[Answer, Any]:
    reply = make_reply(api, thought="Hm.", calls=CALL)
    body = {"model": "an-alias", "max_tokens": 99, "messages": messages, "stream": stream, **fields}
    body = body if thread is None else {**body, "thread": thread}
    answer = shell.run("/v1/messages", body, [streamed(api, reply, 40) if stream else whole(api, reply)])
    if answer.status != 200 or not stream:
        return answer, answer.body
    parser = WIRES["anthropic"].open_stream("")
    parser.feed(answer.data)
    return answer, render_reply(parser.close(), WIRES["anthropic"], Report())


def go_on(message: Any) -> tuple[dict[str, Any], list[Any]]:
    call = next(block for block in message["content"] if block["type"] == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "seen"}
    return {"type": "continue", "previous_message_id": message["id"]}, [{"role": "user", "content": [result]}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", MODELS)
def test_thread_is_continued_from_the_stored_message(api: str, stream: bool) -> None:
    shell = Shell(endpoint(api))
    history: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}]
    marked = [{"role": "user", "content": [{**history[0]["content"][0], "cache_control": {"type": "ephemeral"}}]}]
    prompt = {"system": SYSTEM, "tools": LOOK}
    first, message = send_thread(shell, api, {"type": "create"}, marked, stream=stream, **prompt)
    assert first.status == 200, first.data
    assert "thread" not in first.sent_bodies[0]
    for number in (1, 2):
        thread, messages = go_on(message)
        history += [{"role": "assistant", "content": message["content"]}, *messages]
        answer, message = send_thread(shell, api, thread, messages, stream=stream)
        assert answer.status == 200, answer.data
        whole_history, _ = send_thread(shell, api, None, history, stream=stream, **prompt)
        assert answer.sent_bodies == whole_history.sent_bodies
        sent = json.dumps(answer.sent_bodies[0])
        texts = ("You look.", "Hello.", "Hello back.", "seen", "previous_message_id")
        assert [sent.count(text) for text in texts] == [1, 1, number, number, 0]


@pytest.mark.parametrize("api", [api for api in MODELS if api != "anthropic"])
def test_unknown_message_of_a_thread_is_rejected_so_that_the_sdk_sends_the_whole_history(api: str) -> None:
    shell = Shell(endpoint(api))
    _, message = send_thread(shell, api, {"type": "create"}, request_body("anthropic")["messages"], tools=LOOK)
    thread, messages = go_on(message)
    for client, previous in (("", "msg_unknown"), ("bob", message["id"])):
        body = {"model": "m", "max_tokens": 9, "messages": messages}
        answer = shell.run(
            "/v1/messages", {**body, "thread": {**thread, "previous_message_id": previous}}, client=client
        )
        assert (answer.status, answer.body["error"]["type"]) == (404, "not_found_error")
        assert answer.body["error"]["details"]["error_code"] == "thread_not_found"
        assert answer.sent == []


def test_thread_goes_on_from_its_last_message_only() -> None:
    shell = Shell(endpoint("gemini"))
    _, message = send_thread(shell, "gemini", {"type": "create"}, request_body("anthropic")["messages"], tools=LOOK)
    failed = Response([b'{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}'], 400)
    thread, messages = go_on(message)
    body = {"model": "m", "max_tokens": 9, "messages": messages, "thread": thread}
    assert shell.run("/v1/messages", body, [failed]).status == 400
    assert send_thread(shell, "gemini", thread, messages)[0].status == 200
    answer = shell.run("/v1/messages", body)
    assert answer.status == 400
    assert answer.body["error"]["details"]["error_code"] == "thread_already_continued"


def test_billing_header_of_a_thread_stays_with_its_vendor() -> None:
    shell = Shell(endpoint("gemini"))
    header = "x-anthropic-billing-header: cc_version=2.1; cch=1;"
    system = [{"type": "text", "text": header}, {"type": "text", "text": SYSTEM}]
    messages = request_body("anthropic")["messages"]
    _, message = send_thread(shell, "gemini", {"type": "create"}, messages, tools=LOOK, system=system)
    answer, _ = send_thread(shell, "gemini", *go_on(message))
    sent = json.dumps(answer.sent_bodies[0])
    assert SYSTEM in sent
    assert "billing-header" not in sent


def test_message_is_that_of_the_target_that_answered() -> None:
    """What a target sent before it failed is not part of it."""
    shell = Shell(endpoint("anthropic"), endpoint("gemini", 1))
    start = (
        streamed("anthropic", make_reply("anthropic", thought="Hm."))
        .chunks[0]
        .partition(b"event: content_block_delta")[0]
    )
    started = Response([start], failure=TransportError("lost", "reset"))
    body = {"model": "m", "max_tokens": 9, "messages": [WEATHER], "thread": {"type": "create"}, "stream": True}
    answer = shell.run("/v1/messages", body, [started, streamed("gemini")])
    parser = WIRES["anthropic"].open_stream("")
    parser.feed(answer.data)
    thread = {"type": "continue", "previous_message_id": parser.close().id}
    again, _ = send_thread(shell, "gemini", thread, [WEATHER])
    assert again.status == 200, again.data
    assert json.dumps(again.sent_bodies[0]).count("Hello back.") == 1


# ----------------------------------------------------------------------------------------------------- stored responses


def test_stored_response_is_retrieved_listed_and_deleted() -> None:
    shell = Shell(endpoint("gemini"))
    _, response = create(shell, "gemini")
    path = f"/v1/responses/{response['id']}"
    assert shell.run(path, method="GET").body == response
    items = shell.run(f"{path}/input_items", method="GET").body
    assert (items["object"], items["has_more"]) == ("list", False)
    assert [item["content"] for item in items["data"]] == [[{"type": "input_text", "text": "Hello."}]]
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
