"""What a gateway answers, lists, logs and counts where it can't or may not serve a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue.bridge.providers import Endpoint, resolve
from segue.emulator import start
from segue.gateway.client_keys import ClientKey, hash_key
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.wire.registry import WIRES
from tests.gateway.harness import Running, model_of, running_gateway
from tests.gateway.processes import Home
from tests.gateway.test_gateway import CHAT, HELLO, SURFACES, get, post

CLIENTS = (
    ClientKey("ada", hash_key("key-ada")),
    ClientKey("few", hash_key("key-few"), models=("allowed",)),
    ClientKey("full", hash_key("key-full"), requests_per_minute=1),
)
KEYLESS = {"KEY": "upstream-key", "AWS_REGION": "us-east-1"}


def count_rejected(gateway: Running, reason: str) -> float:
    lines = get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text.splitlines()
    found = [line for line in lines if line.startswith("segue_rejected_total{") and f'reason="{reason}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


REJECTED: dict[str, tuple[dict[str, Any], str, int]] = {
    "host": ({"headers": {"host": "evil.example"}}, "is not served here", 421),
    "origin": ({"headers": {"origin": "https://evil.example"}}, "are not allowed", 403),
    "client-key": ({"headers": {"x-api-key": "wrong"}}, "a valid client key is needed", 401),
    "unknown-path": ({"url": "/v1/nowhere"}, "does not translate GET /v1/nowhere", 404),
    "unknown-model": ({"headers": {"x-api-key": "key-few"}}, "does not allow the model 'any'", 404),
    "requests-a-minute": ({"headers": {"x-api-key": "key-full"}}, "its limit of 1 request a minute", 429),
    "too-large": ({"json": {**CHAT, "user": "x" * 2000}}, "the body has more than", 413),
    "invalid": ({"json": {**CHAT, "messages": [{"role": "secret words", "content": "x"}]}}, "messages[0].role", 400),
    "path": ({"url": "/" + "x" * 3000}, "the path has more than", 414),
    "websocket": ({"headers": {"upgrade": "websocket", "connection": "upgrade"}}, "WebSocket", 426),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected_requests_are_counted_and_logged_with_their_reason(reason: str) -> None:
    options, text, status = REJECTED[reason]
    method = "GET" if "url" in options else "POST"
    request = {"url": "/v1/chat/completions", "json": CHAT, **options}
    request["headers"] = {"x-api-key": "key-ada", **options.get("headers", {})}
    if method == "GET":
        del request["json"]
    with running_gateway({"anthropic": HELLO}, clients=CLIENTS, pending_mb=1000 / 2**20) as gateway:
        if reason == "requests-a-minute":
            assert post(gateway, "/v1/chat/completions", CHAT, **{"x-api-key": "key-full"}).status_code == 200
        url = gateway.url + request.pop("url")
        assert httpx2.request(method, url, timeout=100, **request).status_code == status
        gateway.wait_for_log(text)
        assert "secret words" not in gateway.log
        assert count_rejected(gateway, reason) == 1
        client_name = {"unknown-model": "few", "requests-a-minute": "full"}.get(reason, "ada")
        if reason not in ("host", "origin", "client-key", "path", "websocket"):
            metrics = get(gateway, "/metrics", authorization=f"Bearer {gateway.token}").text
            assert f'segue_rejected_total{{client="{client_name}",reason="{reason}"}} 1' in metrics


@pytest.mark.parametrize("surface", SURFACES)
def test_unknown_model_is_not_found(surface: str) -> None:
    path, body = SURFACES[surface]
    path = path.replace("any", "nobody%2Fmodel")
    with running_gateway({"anthropic": HELLO}) as gateway:
        response = post(gateway, path, {**body, **({"model": "nobody/model"} if "model" in body else {})})
        assert response.status_code == 404
        assert "'nobody' is not a known provider" in response.text
        if surface in ("chat", "responses"):
            assert response.json()["error"]["code"] == "model_not_found"
        gateway.wait_for_log("'nobody' is not a known provider")


def test_missing_model_without_a_default_is_invalid() -> None:
    import io

    from segue.gateway.settings import GatewayRoutes
    from tests.gateway.harness import build_server

    server = build_server(lambda name: resolve(name, KEYLESS), GatewayRoutes(), io.StringIO())
    with server.running():
        response = httpx2.post(f"{server.url}/v1/chat/completions", json={"messages": CHAT["messages"]})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "missing_required_parameter")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_host_and_show_nothing_then(path: str) -> None:
    with running_gateway({"anthropic": HELLO}) as gateway:
        foreign = {"host": "10.0.0.7:8787"}
        response = get(gateway, path, **foreign)
        assert (response.status_code, response.text) == (200, "ok\n" if path == "/healthz" else '{"status":"ready"}')
        assert get(gateway, "/healthz", **foreign, **{"x-segue-nonce": "n"}).status_code == 421
        assert get(gateway, "/metrics", **foreign).status_code == 421


# ------------------------------------------------------------------------------------------------ what can't be served


def keyless(*apis: str) -> Callable[[Running], None]:
    """Remove the keys of these providers from the targets of a gateway."""

    def remove(gateway: Running) -> None:
        find = gateway.server._context.resolve

        def resolve_without_key(name: str) -> Endpoint:
            from msgspec.structs import replace

            endpoint = find(name)
            return replace(endpoint, key=None) if endpoint.api in apis else endpoint

        from segue.gateway.settings import GatewayRoutes

        loaded = gateway.server._context.load_routes()
        assert isinstance(loaded, GatewayRoutes)
        gateway.server._configure(replace_resolver(loaded, resolve_without_key))

    return remove


def replace_resolver(loaded: Any, find: Callable[[str], Endpoint]) -> Any:
    from msgspec.structs import replace

    return replace(loaded, resolve=find)


def test_target_without_key_is_not_ready_and_not_listed() -> None:
    routes = (
        RouteSettings((model_of("anthropic"),), model="one"),
        RouteSettings((model_of("kimi"),), model="two"),
        RouteSettings((model_of("kimi"), model_of("anthropic")), model="both"),
    )
    passthrough = (PassthroughSettings("/v1/embeddings", "test-kimi"),)
    with running_gateway({"anthropic": HELLO, "kimi": HELLO}, routes=routes, passthrough=passthrough) as gateway:
        assert get(gateway, "/readyz").json()["status"] == "ready"
        keyless("kimi")(gateway)
        ready = get(gateway, "/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        states = {row["target"]: row["state"] for row in ready.json()["targets"]}
        assert states == {model_of("anthropic"): "ok", model_of("kimi"): "no-key"}
        assert any("set KEY" in row.get("reason", "") for row in ready.json()["targets"])
        listed = [row["id"] for row in get(gateway, "/v1/models").json()["data"]]
        assert "one" in listed
        assert "both" in listed
        assert "two" not in listed
        assert model_of("kimi") not in listed
        embedding = post(gateway, "/v1/embeddings", {"input": "x"})
        assert (embedding.status_code, embedding.json()["error"]["code"]) == (503, "provider_auth_failed")
        [*targets, passthrough_problem] = gateway.server.problems
        assert passthrough_problem.startswith("/v1/embeddings can't be served")
        assert passthrough_problem.endswith("; its requests fail")
        assert all(line.endswith("; requests for it go to the next target, or fail") for line in targets)
        assert post(gateway, "/v1/chat/completions", {**CHAT, "model": "two"}).status_code == 503
        gateway.wait_for_log("set KEY")
        assert 'segue_rejected_total{reason="no-key"} 2' in get(gateway, "/metrics").text
        keyless("kimi", "anthropic")(gateway)
        none = get(gateway, "/readyz")
        assert (none.status_code, none.json()["status"]) == (503, "not-ready")


def test_lists_have_what_the_key_may_use() -> None:
    routes = tuple(
        RouteSettings((model_of("anthropic"),), model=name, name=f"route-{name}") for name in ("one", "two", "three")
    )
    clients = (
        ClientKey("ada", hash_key("key-ada"), models=("one",)),
        ClientKey("bob", hash_key("key-bob"), routes=("route-t*",)),
    )
    with running_gateway({"anthropic": HELLO}, routes=routes, clients=clients) as gateway:
        for key, names in (("key-ada", ["one"]), ("key-bob", ["two", "three"])):
            listed = get(gateway, "/v1/models", **{"x-api-key": key}).json()["data"]
            assert [row["id"] for row in listed] == names
            for name in ("one", "two", "three"):
                status = post(
                    gateway, "/v1/chat/completions", {**CHAT, "model": name}, **{"x-api-key": key}
                ).status_code
                assert status == (200 if name in names else 404)


def test_routes_without_a_name_have_their_pattern() -> None:
    target = (model_of("anthropic"),)
    routes = (
        RouteSettings(target, model="claude-*", max_tokens=100),
        RouteSettings(target, model="claude-*"),
        RouteSettings(target, name="claude-* 2", model="x"),
    )
    with running_gateway({"anthropic": HELLO}, routes=routes) as gateway:
        post(gateway, "/v1/chat/completions", {**CHAT, "model": "claude-x"})
        post(
            gateway, "/v1/chat/completions", {"model": "claude-x", "messages": [{"role": "user", "content": "y" * 999}]}
        )
        metrics = get(gateway, "/metrics").text
        assert 'route="claude-*",' in metrics
        assert 'route="claude-* 3",' in metrics


# ------------------------------------------------------------------------------------------------------- one request


def test_diag_shows_one_request(tmp_path: Path) -> None:
    with start("anthropic", script=HELLO) as emulator:
        home = Home(tmp_path / "home", emulator, WIRES["anthropic"].default_model)
        usage = tmp_path / "usage.jsonl"
        with home.serve("--usage", str(usage)) as gateway:
            served = httpx2.post(f"{gateway.url}/v1/chat/completions", json=CHAT, timeout=100).headers["x-request-id"]
            wrong = {**CHAT, "model": "nobody/x"}
            refused = httpx2.post(f"{gateway.url}/v1/chat/completions", json=wrong, timeout=100).headers["x-request-id"]
            gateway.wait_for(refused)
            shown = home.run("diag", served, str(usage))
            assert not any(line.endswith((": None", ": ", ": 0", ": 0.0")) for line in shown.stdout.splitlines())
            assert "route: default" in shown.stdout, shown.stderr
            assert json.loads(home.run("diag", served, str(usage), "--json").stdout)["status"] == 200
            log = tmp_path / "home" / "log-1"
            assert "'nobody' is not a known" in home.run("diag", refused, str(log)).stdout
            missing = home.run("diag", refused, str(usage))
            assert missing.returncode == 2
            assert f"has no line of {refused}" in missing.stderr


def test_start_warns_of_what_can_not_be_served(tmp_path: Path) -> None:
    with start("anthropic", script=HELLO) as emulator:
        home = Home(tmp_path / "home", emulator, WIRES["anthropic"].default_model)
        with home.config.open("a") as config:
            config.write('[aliases]\nfast = "moonshot/kimi-k2.6"\nodd = "nobody/x"\n')
        with home.serve() as gateway:
            gateway.wait_for("fast can't be served: no API key for moonshot: set MOONSHOT_API_KEY")
            gateway.wait_for("odd can't be served: 'nobody' is not a known provider")
            assert "fast" not in httpx2.get(f"{gateway.url}/v1/models", timeout=100).text
