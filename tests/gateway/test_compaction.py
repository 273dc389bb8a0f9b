"""Compactions through running gateways: several workers, a restart, a store, and several clients."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest

from segue.bridge import compaction_relay
from segue.bridge.providers import resolve
from segue.emulator import Emulator, start
from segue.gateway import app
from segue.gateway.client_keys import ClientKey, hash_key
from segue.gateway.server import GatewayServer
from segue.gateway.settings import GatewayRoutes
from segue.wire.registry import WIRES
from tests.bridge.exchanges import streamed, whole
from tests.gateway.harness import build_server, model_of, running_gateway
from tests.gateway.processes import Home
from tests.gateway.upstreams import Handler, Upstream, running_upstream

FACTS = ("KESTREL-7", "OSPREY-9")
TRIGGER = {"type": "compaction_trigger"}
ASK = {"role": "user", "content": "And now?"}
HOME = "openai-responses"
ABROAD = ("kimi", "anthropic", "gemini", "mistral", "bedrock")
TALK = [
    {"role": "user", "content": f"Remember {FACTS[0]}."},
    {"role": "assistant", "content": f"Noted, and {FACTS[1]}."},
    {"role": "user", "content": "More."},
]


def post(url: str, items: list[Any], path: str = "/v1/responses", key: str = "any", **fields: Any) -> httpx2.Response:
    body = {"model": "any", "input": items, "store": False, **fields}
    return httpx2.post(f"{url}{path}", json=body, headers={"authorization": f"Bearer {key}"}, timeout=100)


def compact(url: str, items: list[Any], **fields: Any) -> dict[str, Any]:
    response = post(url, [*items, TRIGGER], **fields)
    assert response.status_code == 200, response.text
    (item,) = response.json()["output"]
    assert item["type"] == "compaction"
    return item


def last_body(emulator: Emulator) -> dict[str, Any]:
    record = emulator.requests[-1]
    assert record.refused is None
    assert record.body is not None
    return dict(record.body)


def assert_facts(emulator: Emulator, blobs: list[str]) -> None:
    sent = json.dumps(last_body(emulator))
    assert [sent.count(fact) for fact in FACTS] == [1, 1]
    assert not [blob for blob in blobs if blob in sent]


def test_facts_reach_every_upstream_and_the_item_comes_home(place: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        emulators = {api: stack.enter_context(start(api)) for api in (HOME, *ABROAD)}
        home = Home(tmp_path / "home", emulators[HOME], model_of(HOME).partition("/")[2])
        home.variables["AWS_REGION"] = "us-east-1"
        with home.config.open("a") as file:
            for api, emulator in emulators.items():
                own = f'api = "{api}"\nbase_url = "{emulator.base_url}"\nkey_variable = "TEST_KEY"\n'
                file.write(f"[providers.test-{api}]\n{own}")
        options = ("-m", model_of(HOME), "--workers", "2", "--store", place)
        with home.serve(*options, has_model=False) as gateway:
            item = compact(gateway.url, TALK)
        blob = item["encrypted_content"]
        with home.serve(*options, has_model=False) as gateway:
            for turn, api in enumerate(ABROAD):
                assert home.run("route", model_of(api)).returncode == 0
                assert post(gateway.url, [item, ASK], stream=turn % 2 == 1).status_code == 200
                assert_facts(emulators[api], [blob])
            # What segue itself made of it abroad is a text everywhere, at home, too.
            own = compact(gateway.url, [item, ASK])
            assert home.run("route", model_of(HOME)).returncode == 0
            assert post(gateway.url, [item, ASK]).status_code == 200
            assert last_body(emulators[HOME])["input"] == [item, ASK]
            assert post(gateway.url, [own, ASK]).status_code == 200
            assert own["encrypted_content"] not in json.dumps(last_body(emulators[HOME]))


def test_only_the_client_that_compacted_gets_the_messages() -> None:
    clients = [ClientKey(name, hash_key(name)) for name in ("ada", "bob")]
    with running_gateway({HOME: "", "kimi": ""}, clients=clients) as gateway:
        item = compact(gateway.url, TALK, key="ada")
        blob = item["encrypted_content"]
        for key, found in (("bob", 0), ("ada", 1)):
            response = post(gateway.url, [item, ASK], key=key, model=model_of("kimi"))
            assert response.status_code == 200, response.text
            sent = json.dumps(last_body(gateway.emulators["kimi"]))
            assert [sent.count(fact) for fact in FACTS] == [found, found]
            assert blob not in sent
            assert ("not available here" in sent) is not bool(found)


@pytest.mark.parametrize("setting", [{"compaction_memory": False}, {"compaction_mb": 0.0001}])
def test_what_is_not_remembered_is_lost_and_said(setting: dict[str, Any]) -> None:
    with running_gateway({HOME: "", "kimi": ""}, **setting) as gateway:
        item = compact(gateway.url, TALK)
        response = post(gateway.url, [item, ASK], model=model_of("kimi"))
        assert response.status_code == 200, response.text
        sent = json.dumps(last_body(gateway.emulators["kimi"]))
        assert "not available here" in sent
        assert item["encrypted_content"] not in sent
        assert post(gateway.url, [item, ASK]).status_code == 200
        assert last_body(gateway.emulators[HOME])["input"] == [item, ASK]


def test_wrong_items_get_the_providers_error_at_home_and_are_never_sent_abroad() -> None:
    with running_gateway({HOME: "", "kimi": ""}) as gateway:
        item, other = compact(gateway.url, TALK), compact(gateway.url, [{"role": "user", "content": "SECRET"}])
        base, headers = gateway.emulators[HOME].base_url, {"authorization": "Bearer another"}
        theirs = {"model": "gpt-5", "input": [*TALK, TRIGGER]}
        foreign = httpx2.post(f"{base}/responses", json=theirs, headers=headers, timeout=100).json()["output"][0]
        blob = item["encrypted_content"]
        wrong = {
            "forged": {**item, "encrypted_content": "gAAAAforged"},
            "truncated": {**item, "encrypted_content": blob[:-12]},
            "swapped": {**item, "encrypted_content": other["encrypted_content"]},
            "another account's": foreign,
        }
        for name, sent in wrong.items():
            refused = post(gateway.url, [sent, ASK])
            assert refused.status_code == 400, name
            assert refused.json()["error"]["code"] == "invalid_encrypted_content", name
            assert post(gateway.url, [sent, ASK], model=model_of("kimi")).status_code == 200, name
            assert sent["encrypted_content"] not in json.dumps(last_body(gateway.emulators["kimi"])), name
        for number, items in enumerate(([TRIGGER, ASK], [*TALK, TRIGGER, TRIGGER])):
            assert post(gateway.url, items).status_code == 400, number
            assert post(gateway.url, items, model=model_of("kimi")).status_code == 400, number
        assert post(gateway.url, TALK, "/v1/responses/compact", model=None).status_code == 400
        # Nothing is lost by all that.
        assert post(gateway.url, [item, ASK], model=model_of("kimi")).status_code == 200
        assert_facts(gateway.emulators["kimi"], [blob])


LONG = [{"role": "user", "content": f"FACT-{number} " + "words " * 200} for number in range(20)]
ABOVE = {"context_management": [{"type": "compaction", "compact_threshold": 1_000}]}


@contextmanager
def gateway_with_a_slow_summary(released: Event) -> Generator[tuple[GatewayServer, Upstream]]:
    """Run a gateway whose model writes a summary only when an event is set, and answers all else at once."""

    def answer(handler: Handler) -> None:
        body = upstream.requests[-1].body
        if b"Summarise" in body:
            released.wait()
        handler.reply(b"".join((streamed("kimi") if b'"stream":true' in body else whole("kimi")).chunks))

    with running_upstream(answer) as upstream:
        providers = {"slow": {"api": "kimi", "base_url": upstream.url, "key_variable": "KEY"}}
        loaded = GatewayRoutes((), ("slow/kimi-k2.6",), prefers_default=True)
        server = build_server(lambda name: resolve(name, {"KEY": "k"}, providers), loaded, io.StringIO())
        with server.running():
            try:
                yield server, upstream
            finally:
                released.set()


def test_streaming_client_gets_keep_alives_while_a_summary_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_KEEP_ALIVE_SECONDS", 0.01)
    released, data = Event(), b""
    body = {"model": "any", "input": [*LONG, TRIGGER], "stream": True}
    with (
        gateway_with_a_slow_summary(released) as (server, _upstream),
        httpx2.stream("POST", f"{server.url}/v1/responses", json=body, timeout=100) as response,
    ):
        for chunk in response.iter_bytes():
            data += chunk
            if data.startswith(b": keep-alive\n\n: keep-alive\n\n"):
                released.set()
    assert released.is_set()
    assert data.count(b"event: response.output_item.done") == 1
    assert b'"type":"compaction"' in data


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_does_not_wait_for_a_summary_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(compaction_relay, "MAX_SECONDS", 0.05)
    with gateway_with_a_slow_summary(Event()) as (server, upstream):
        response = post(server.url, LONG, stream=stream, **ABOVE)
        assert response.status_code == 200, response.text
        *summaries, request = upstream.requests  # the time may be over before the first one is sent
        assert all(b"Summarise" in summary.body for summary in summaries)
        assert all(f"FACT-{number} ".encode() in request.body for number in range(20))


ACCOUNTS = {"first": "KEY1", "second": "KEY2"}
SECRETS = ("encrypted_content", "signature")
PATHS = {HOME: "/v1/responses", "anthropic": "/v1/messages"}
OWN_HEADERS = {
    "authorization": "Bearer one",
    "x-api-key": "one",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "compact-2026-09-04",
}


@contextmanager
def two_accounts(api: str, *, same_url: bool, **settings: Any) -> Generator[tuple[str, list[Emulator]]]:
    """Run a gateway whose route has two accounts of one API, at one endpoint or at two."""
    with ExitStack() as stack:
        emulators = [stack.enter_context(start(api)) for _ in ACCOUNTS]
        urls = [emulators[0].base_url, emulators[0 if same_url else 1].base_url]
        rows = zip(ACCOUNTS.items(), urls, strict=True)
        providers = {name: {"api": api, "base_url": url, "key_variable": key} for (name, key), url in rows}
        default = tuple(f"{name}/{WIRES[api].default_model}" for name in ACCOUNTS)
        server = build_server(
            lambda name: resolve(name, {"KEY1": "one", "KEY2": "two"}, providers),
            GatewayRoutes((), default, prefers_default=True),
            io.StringIO(),
            **settings,
        )
        stack.enter_context(server.running())
        yield server.url, emulators


def compact_at(url: str, api: str) -> dict[str, Any]:
    """Let the provider itself make a compaction; return its item or block."""
    body: dict[str, Any] = {"model": WIRES[api].default_model, "max_tokens": 500, "messages": TALK}
    if api == HOME:
        body = {"model": WIRES[api].default_model, "input": [*TALK, TRIGGER]}
    else:
        body["compaction"] = {"type": "summarize"}
    response = httpx2.post(url, json=body, headers=OWN_HEADERS, timeout=100)
    assert response.status_code == 200, response.text
    return dict(response.json()["output" if api == HOME else "content"][0])


def send_back(url: str, api: str, block: dict[str, Any], model: str = "any") -> None:
    messages = [{"role": "assistant", "content": [block]}, ASK]
    body: dict[str, Any] = {"model": model, "max_tokens": 500, "messages": messages}
    if api == HOME:
        body = {"model": model, "input": [block, ASK], "store": False}
    response = httpx2.post(f"{url}{PATHS[api]}", json=body, headers=OWN_HEADERS, timeout=100)
    assert response.status_code == 200, response.text


def holds(emulator: Emulator, block: dict[str, Any]) -> bool:
    """Return whether the newest request has what only the maker of a compaction can read."""
    sent = json.dumps(last_body(emulator))
    return any(block[key] in sent for key in SECRETS if block.get(key))


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("same_url", [True, False])
@pytest.mark.parametrize("api", PATHS)
def test_a_compaction_goes_to_the_account_that_made_it_only(api: str, same_url: bool, memory: bool) -> None:
    with two_accounts(api, same_url=same_url, compaction_memory=memory) as (url, emulators):
        first, second = emulators[0], emulators[0 if same_url else 1]
        block = compact_at(f"{url}{PATHS[api]}", api)
        send_back(url, api, block)
        assert holds(first, block)
        send_back(url, api, block, f"second/{WIRES[api].default_model}")
        assert not holds(second, block)
        sent = json.dumps(last_body(second))
        assert [fact in sent for fact in FACTS] == [memory, memory] or api != HOME
        assert memory or ("not available here" if api == HOME else "summary of the conversation so far") in sent


@pytest.mark.parametrize("api", PATHS)
def test_a_compaction_of_an_unknown_maker_goes_to_one_account_only(api: str) -> None:
    """The gateway never saw it made: it may be of the first account of the route, and is never sent to another."""
    with two_accounts(api, same_url=False) as (url, (first, second)):
        block = compact_at(f"{first.base_url.removesuffix('/v1')}{PATHS[api]}", api)
        send_back(url, api, block)
        assert holds(first, block)
        first.stop()
        send_back(url, api, block)
        assert not holds(second, block)
        expected = "not available here" if api == HOME else "summary of the conversation so far"
        assert expected in json.dumps(last_body(second))
