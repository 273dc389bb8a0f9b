"""Conversations and threads through running gateways, under the vendors' SDKs: several upstreams, a store, clients."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from segue.emulator import Emulator, start
from segue.gateway.client_keys import ClientKey, hash_key
from tests.gateway.harness import model_of, running_gateway
from tests.gateway.processes import Home

UPSTREAMS = ("kimi", "anthropic", "gemini", "openai-responses")
FACTS = ("KESTREL-7", "OSPREY-9", "HERON-3", "PLOVER-4")
CLIENTS = [ClientKey(name, hash_key(name)) for name in ("ada", "bob")]


def connect_openai(url: str, key: str = "any") -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)


def connect_anthropic(url: str, key: str = "any") -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)


def ask(client: openai.OpenAI, conversation: str, text: str, *, stream: bool, model: str = "any") -> Any:
    if not stream:
        return client.responses.create(model=model, input=text, conversation=conversation)
    *_, last = client.responses.create(model=model, input=text, conversation=conversation, stream=True)
    assert last.type == "response.completed"
    return last.response


def say(thread: Any, text: str, *, stream: bool) -> None:
    message = {"role": "user", "content": text}
    if not stream:
        thread.send(message)
        return
    with thread.stream(message) as events:
        events.get_final_message()


def send_in_thread(url: str, text: str, thread: Any) -> str:
    message: Any = {"role": "user", "content": text}
    created = connect_anthropic(url).beta.messages.create(
        model="any", max_tokens=500, messages=[message], thread=thread, betas=["message-threads-2026-08-12"]
    )
    return created.id


def find_facts(emulator: Emulator) -> list[str]:
    """Return the facts in the newest request, which refers to nothing outside of it."""
    record = emulator.requests[-1]
    assert record.refused is None
    assert record.body is not None
    assert not {"thread", "conversation", "previous_response_id"} & {*record.body}
    return [fact for fact in FACTS if fact in json.dumps(record.body)]


def test_conversation_goes_on_at_every_upstream() -> None:
    with running_gateway(dict.fromkeys(UPSTREAMS, "")) as gateway:
        client = connect_openai(gateway.url)
        conversation = client.conversations.create(metadata={"topic": "birds"})
        for number, api in enumerate(UPSTREAMS):
            response = ask(client, conversation.id, FACTS[number], stream=number % 2 == 1, model=model_of(api))
            assert response.conversation.id == conversation.id
            assert find_facts(gateway.emulators[api]) == [*FACTS[: number + 1]]
        items: list[Any] = list(client.conversations.items.list(conversation.id, order="asc", limit=3))
        assert [item.content[0].text for item in items if item.role == "user"] == [*FACTS]
        assert client.conversations.retrieve(conversation.id).metadata == {"topic": "birds"}
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(openai.NotFoundError) as gone:
            client.conversations.items.list(conversation.id)
        assert gone.value.code == "conversation_not_found"


def test_thread_goes_on_at_every_upstream() -> None:
    with running_gateway(dict.fromkeys(UPSTREAMS, "")) as gateway:
        thread = connect_anthropic(gateway.url).beta.messages.thread(model="any", max_tokens=500, system="Birds.")
        for number, api in enumerate(UPSTREAMS):
            thread.update(model=model_of(api))
            # Every turn but the first one has only its own message.
            assert (thread.previous_message_id is None) is (number == 0)
            say(thread, FACTS[number], stream=number % 2 == 1)
            assert find_facts(gateway.emulators[api]) == [*FACTS[: number + 1]]
            assert json.dumps(gateway.emulators[api].requests[-1].body).count("Birds.") == 1


def test_history_outlives_a_restart_and_is_shared_by_workers(place: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        emulator = stack.enter_context(start("kimi"))
        home = Home(tmp_path / "home", emulator, model_of("kimi").partition("/")[2])
        options = ("--workers", "2", "--store", place)
        with home.serve(*options) as gateway:
            item: Any = {"role": "user", "content": FACTS[0]}
            conversation = connect_openai(gateway.url).conversations.create(items=[item])
            previous = send_in_thread(gateway.url, FACTS[0], {"type": "create"})
        with home.serve(*options) as gateway:
            for number in (1, 2, 3):
                # A new client has a new connection, which may be to the other worker.
                ask(connect_openai(gateway.url), conversation.id, FACTS[number], stream=number % 2 == 1)
                assert find_facts(emulator) == [*FACTS[: number + 1]]
                thread = {"type": "continue", "previous_message_id": previous}
                previous = send_in_thread(gateway.url, FACTS[number], thread)
                assert find_facts(emulator) == [*FACTS[: number + 1]]


def test_conversation_belongs_to_one_client() -> None:
    with running_gateway({"kimi": ""}, clients=CLIENTS) as gateway:
        conversation = connect_openai(gateway.url, "ada").conversations.create()
        bob = connect_openai(gateway.url, "bob")
        for name in (conversation.id, "conv_unknown"):
            with pytest.raises(openai.NotFoundError) as unknown:
                ask(bob, name, "Hi.", stream=False)
            body: Any = unknown.value.body
            assert (body["code"], body["param"]) == ("conversation_not_found", "conversation")
        with pytest.raises(openai.BadRequestError) as exclusive:
            bob.responses.create(model="any", input="Hi.", conversation="conv_1", previous_response_id="resp_1")
        assert exclusive.value.code == "mutually_exclusive_parameters"
        assert not gateway.emulators["kimi"].requests


def test_sdk_sends_the_whole_history_of_a_thread_that_is_not_stored_for_its_key() -> None:
    with running_gateway({"kimi": ""}, clients=CLIENTS) as gateway:
        client = connect_anthropic(gateway.url, "ada")
        thread = client.beta.messages.thread(model="any", max_tokens=500)
        say(thread, FACTS[0], stream=False)
        client.api_key = "bob"
        for number, is_stream in ((1, False), (2, True)):
            say(thread, FACTS[number], stream=is_stream)
            assert find_facts(gateway.emulators["kimi"]) == [*FACTS[: number + 1]]
        assert gateway.log.count("; 404; ") == 1
