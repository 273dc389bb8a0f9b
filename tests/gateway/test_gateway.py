"""The gateway over HTTP: surfaces, hosts, origins, client keys, routes, control calls, endings."""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
import time
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest
from msgspec.structs import replace

from segue.gateway.client_keys import ClientKey, GroupSettings, hash_key
from segue.gateway.hooks import HookSettings
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.gateway.settings import AT_START, GatewaySettings
from tests.gateway.harness import Running, model_of, running_gateway

HELLO = "\n---\n".join(["say Hi there."] * 40)
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", CHAT),
    "responses": ("/v1/responses", {"model": "any", "input": "Hello"}),
    "messages": ("/v1/messages", {**CHAT, "max_tokens": 100}),
    "gemini": ("/v1beta/models/any:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
    "bedrock": ("/model/any/converse", {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}),
}


def post(gateway: Running, path: str, body: Any, **headers: str) -> httpx2.Response:
    return httpx2.post(gateway.url + path, json=body, headers=headers, timeout=100)


def get(gateway: Running, path: str, **headers: str) -> httpx2.Response:
    return httpx2.get(gateway.url + path, headers=headers, timeout=100)


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_reaches_every_provider(surface: str) -> None:
    path, body = SURFACES[surface]
    for api in ("anthropic", "gemini", "kimi"):
        with running_gateway({api: HELLO}) as gateway:
            response = post(gateway, path, body)
            assert response.status_code == 200, response.text
            assert "Hi there." in response.text
            assert response.headers["x-request-id"].startswith("req_")
            assert not gateway.emulators[api].requests[0].refused


def test_own_paths() -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        assert get(gateway, "/healthz").text == "ok\n"
        ready = get(gateway, "/readyz").json()
        assert ready["status"] == "ready"
        assert ready["models"] == [model_of("anthropic")]
        assert post(gateway, "/v1/chat/completions", CHAT).status_code == 200
        metrics = get(gateway, "/metrics").text
        assert 'segue_requests_total{api="openai-chat",route="default",status="200"' in metrics
        assert 'kind="output"' in metrics
        assert get(gateway, "/v1/models").json()["data"][0]["id"] == model_of("anthropic")
        assert "models" in get(gateway, "/v1beta/models").json()
        assert get(gateway, "/nowhere").status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:5"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"connection": "Upgrade", "upgrade": "websocket"}, 426),
    ],
)
def test_foreign_hosts_origins_and_upgrades_are_refused(headers: dict[str, str], status: int) -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        response = get(gateway, "/v1/models", **headers)
        assert response.status_code == status
        assert not gateway.emulators["anthropic"].requests


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_refuses_foreign_hosts_and_origins(surface: str) -> None:
    path, body = SURFACES[surface]
    with running_gateway({"anthropic": HELLO}) as gateway:
        for headers, status in (
            ({"host": "evil.example"}, 421),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
        ):
            response = post(gateway, path, body, **headers)
            assert response.status_code == status
            assert response.headers["x-request-id"]
        assert not gateway.emulators["anthropic"].requests


def test_keys_are_accepted_wherever_an_api_has_them() -> None:
    clients = (ClientKey("ada", hash_key("key-ada")),)
    with running_gateway({"anthropic": HELLO}, clients=clients) as gateway:
        for path, body in SURFACES.values():
            for headers in (
                {"x-api-key": "key-ada"},
                {"x-goog-api-key": "key-ada"},
                {"api-key": "key-ada"},
                {"authorization": "Bearer key-ada"},
                {"x-api-key": "other", "authorization": "bearer key-ada"},
            ):
                assert post(gateway, path, body, **headers).status_code == 200
            assert post(gateway, f"{path}?key=key-ada", body).status_code == 200
            assert post(gateway, path, body, **{"x-api-key": "other"}).status_code == 401


def test_configured_hosts_and_origins_are_served() -> None:
    clients, names = (ClientKey("ada", hash_key("key-ada")),), {"allowed_origins": ("https://ui.example",)}
    with running_gateway({"anthropic": HELLO}, clients=clients, allowed_hosts=("gate.example",), **names) as gateway:
        headers = {"host": "gate.example", "origin": "https://ui.example"}
        assert get(gateway, "/v1/models", **headers).status_code == 401
        assert get(gateway, "/v1/models", **headers, **{"x-api-key": "key-ada"}).status_code == 200


def test_client_keys_are_needed_and_limited() -> None:
    clients = (
        ClientKey("one", hash_key("key-one"), requests_per_minute=2),
        ClientKey("two", hash_key("key-two"), models=("allowed-*",)),
        ClientKey("old", hash_key("key-old"), expires=time.time() - 1),
    )
    with running_gateway({"anthropic": HELLO}, clients=clients) as gateway:
        path = "/v1/chat/completions"
        assert post(gateway, path, CHAT).status_code == 401
        assert post(gateway, path, CHAT, authorization="Bearer wrong").status_code == 401
        assert post(gateway, path, CHAT, authorization="Bearer key-old").status_code == 401
        assert get(gateway, "/v1/models", authorization="Bearer key-one").status_code == 200
        for name, value in (("x-api-key", "key-one"), ("authorization", "Bearer key-one")):
            assert post(gateway, path, CHAT, **{name: value}).status_code == 200
        limited = post(gateway, path, CHAT, authorization="Bearer key-one")
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) <= 60
        listings = [get(gateway, "/v1/models", authorization="Bearer key-one").status_code for _ in range(3)]
        assert listings == [200] * 3
        assert post(gateway, path, CHAT, **{"x-goog-api-key": "key-two"}).status_code == 404
        allowed = {**CHAT, "model": "allowed-model"}
        assert post(gateway, path, allowed, **{"x-goog-api-key": "key-two"}).status_code == 200
        assert "key-one" not in gateway.log
        gateway.wait_for_log("one; POST")
        sent = gateway.emulators["anthropic"].requests
        assert len(sent) == 3


def test_control_calls_need_the_token_and_change_the_model() -> None:
    with running_gateway({"anthropic": HELLO, "kimi": HELLO}) as gateway:
        body = {"models": [model_of("kimi")]}
        assert post(gateway, "/segue/route", body).status_code == 401
        assert post(gateway, "/segue/route", body, authorization="Bearer wrong").status_code == 401
        token = {"authorization": f"Bearer {gateway.token}"}
        assert post(gateway, "/v1/chat/completions", CHAT).status_code == 200
        assert post(gateway, "/segue/route", body, **token).json() == {"models": [model_of("kimi")]}
        assert post(gateway, "/v1/chat/completions", CHAT).status_code == 200
        assert [len(gateway.emulators[api].requests) for api in ("anthropic", "kimi")] == [1, 1]
        assert post(gateway, "/segue/route", {"models": ["nowhere/x"]}, **token).status_code == 400
        assert post(gateway, "/segue/route", {"modles": []}, **token).status_code == 400
        assert post(gateway, "/segue/route", {"models": []}, **token).json() == {"models": []}
        assert post(gateway, "/v1/chat/completions", CHAT).status_code == 200
        assert len(gateway.emulators["anthropic"].requests) == 2


def test_routes_select_by_name_size_and_content() -> None:
    routes = (
        RouteSettings((model_of("gemini"),), model="long-*", min_tokens=500),
        RouteSettings((model_of("anthropic"), model_of("gemini")), model="long-*", balance="round-robin"),
        RouteSettings((model_of("kimi"),), model="thinker", reasoning=True),
    )
    scripts = {"anthropic": HELLO, "gemini": HELLO, "kimi": HELLO}
    with running_gateway(scripts, routes=routes, default=(model_of("kimi"),)) as gateway:

        def counts() -> list[int]:
            return [len(gateway.emulators[api].requests) for api in scripts]

        path = "/v1/chat/completions"
        long = {"model": "long-x", "messages": [{"role": "user", "content": "word " * 1000}]}
        assert post(gateway, path, long).status_code == 200
        assert counts() == [0, 1, 0]
        for _ in range(2):
            assert post(gateway, path, {**CHAT, "model": "long-x"}).status_code == 200
        assert counts() == [1, 2, 0]
        assert post(gateway, path, {**CHAT, "model": "thinker", "reasoning_effort": "low"}).status_code == 200
        assert post(gateway, path, {**CHAT, "model": model_of("anthropic")}).status_code == 200
        assert post(gateway, path, {**CHAT, "model": "unknown"}).status_code == 200
        assert counts() == [2, 2, 2]


def test_fallback_before_content_and_one_start() -> None:
    routes = (RouteSettings((model_of("anthropic"), model_of("kimi")), attempts=1),)
    scripts = {"anthropic": "error 529 Overloaded.\n---\nerror 500 Broken.", "kimi": HELLO}
    with running_gateway(scripts, routes=routes) as gateway:
        client = openai.OpenAI(api_key="x", base_url=f"{gateway.url}/v1", max_retries=0)
        reply = client.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}])
        assert reply.choices[0].message.content == "Hi there."
        chunks = list(
            client.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], stream=True)
        )
        roles = [chunk.choices[0].delta.role for chunk in chunks if chunk.choices and chunk.choices[0].delta.role]
        assert roles == ["assistant"]


def test_upstream_errors_have_the_form_of_the_callers_api() -> None:
    with running_gateway({"gemini": "error 429 Slow down. (retry after 7)\n---\nerror 400 No."}) as gateway:
        client = anthropic.Anthropic(api_key="x", base_url=gateway.url, max_retries=0)
        body: Any = {"model": "x", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
        gateway.server.table.override([])
        with pytest.raises(anthropic.APIStatusError) as raised:
            client.messages.create(**body)
        assert raised.value.status_code in (429, 400)


def test_large_and_broken_bodies() -> None:
    with running_gateway({"anthropic": HELLO}, timeout=5) as gateway:
        parts = urlsplit(gateway.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
        for body, status in ((b"{", 400), (b"[]", 400), (b"", 400), (b'{"model": 5}', 400), (b"\xff", 400)):
            connection.request("POST", "/v1/chat/completions", body)
            response = connection.getresponse()
            error = json.loads(response.read())
            assert response.status == status
            assert error["error"]["message"]
        connection.close()


def test_uvloop_is_used_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    def new_event_loop() -> asyncio.AbstractEventLoop:
        loops.append(asyncio.new_event_loop())
        return loops[-1]

    module = ModuleType("uvloop")
    module.__spec__ = ModuleSpec("uvloop", None)
    module.__dict__["new_event_loop"] = new_event_loop
    monkeypatch.setitem(sys.modules, "uvloop", module)
    with running_gateway({"anthropic": HELLO}) as gateway:
        assert post(gateway, "/v1/chat/completions", CHAT).status_code == 200
    assert len(loops) == 1


def test_client_that_leaves_cancels_the_request() -> None:
    with running_gateway({"anthropic": "say One.\nwait 1000\nsay Two."}) as gateway:
        with httpx2.stream(
            "POST", gateway.url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=100
        ) as response:
            assert next(response.iter_bytes())
        deadline = time.monotonic() + 60
        while "the client closed the connection" not in gateway.log:
            assert time.monotonic() < deadline, gateway.log
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"host": "0.0.0.0"}, "host: clients of other machines need client keys"),
        ({"behind_proxy": True}, r"gateway\.behind_proxy: clients of other machines need client keys"),
        ({"allowed_hosts": ("localhost", "10.1.2.3")}, r"gateway\.allowed_hosts\[1\]: clients of other machines"),
        ({"behind_proxy": True, "is_emulated": True}, "need client keys"),
        ({"host": "0.0.0.0", "is_emulated": True}, "on loopback only"),
        ({"host": "0.0.0.0", "clients": (ClientKey("a", "b"),)}, "needs TLS"),
    ],
)
def test_other_addresses_need_keys_and_tls(settings: dict[str, Any], message: str) -> None:
    from segue.errors import InputError

    with pytest.raises(InputError, match=message), running_gateway({"anthropic": HELLO}, **settings):
        pass


# A valid value of each setting that is not its default.
CHANGED: dict[str, Any] = {
    "host": "127.0.0.2",
    "port": 9,
    "allowed_hosts": ("llm.example",),
    "allowed_origins": ("https://ui.example",),
    "certificate": "/c",
    "private_key": "/k",
    "behind_proxy": True,
    "timeout": 3.0,
    "first_byte": 4.0,
    "usage": "/u",
    "memory_mb": 5.0,
    "pending_mb": 6.0,
    "large_mb": 7.0,
    "max_messages": 8,
    "max_calls": 9,
    "store": "/s",
    "store_mb": 10.0,
    "store_days": 11.0,
    "compaction_memory": False,
    "compaction_mb": 12.0,
    "workers": 13,
    "routes": (RouteSettings("x", ("test-anthropic/y",)),),
    "passthrough": (PassthroughSettings("/x", "test-anthropic"),),
    "hooks": (HookSettings("http://127.0.0.1:9", "reply"),),
    "groups": {"backend": GroupSettings(concurrent=1)},
    "unknown_price": 14.0,
    "budget_webhook": "http://127.0.0.1:9",
}


def test_reload_replaces_every_setting_but_those_of_the_start() -> None:
    assert set(CHANGED) == {*GatewaySettings.__struct_fields__}
    clients = (ClientKey("ada", hash_key("key-ada")),)
    with running_gateway({"anthropic": HELLO}, clients=clients) as gateway:
        server, loaded = gateway.server, gateway.server._context.load_routes()
        before, changed = server._settings, GatewaySettings(**CHANGED)
        server._context = replace(server._context, load_routes=lambda: replace(loaded, settings=changed))
        server.reload()
        for name in GatewaySettings.__struct_fields__:
            expected = getattr(before if name in AT_START else changed, name)
            assert getattr(server._settings, name) == expected, name
        token = {"authorization": f"Bearer {gateway.token}"}
        assert get(gateway, "/readyz", **token).json()["needs_restart"] == sorted(AT_START)
        assert server._bridge._settings.first_byte == 4
        assert (server._passthrough.timeout, server._spending.unknown_price) == (3, 14)
