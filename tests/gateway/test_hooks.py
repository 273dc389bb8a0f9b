"""Webhooks that allow, deny or replace requests and replies of a gateway, and those that fail."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from segue.gateway.hooks import HookSettings
from segue.gateway.passthrough_routes import PassthroughSettings
from tests.gateway.harness import Running, running_gateway
from tests.gateway.test_gateway import CHAT, HELLO, SURFACES, get, post
from tests.gateway.test_passthrough import passthrough_gateway
from tests.gateway.upstreams import Handler, running_upstream

Function = Callable[[dict[str, Any]], dict[str, Any]]
PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
SECRET = "AKIAABCDEFGHIJKLMNOP"
CALL = "\n---\n".join(['call delete_database {"n": 1}'] * 9)
TOOL = {
    "type": "function",
    "function": {"name": "delete_database", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}


def page_functions() -> dict[str, Any]:
    """Return what the examples of the page define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    return names


def serve(function: Function) -> Callable[[Handler], None]:
    def answer(handler: Handler) -> None:
        handler.reply(json.dumps(function(json.loads(handler.upstream.requests[-1].body))).encode())

    return answer


def last_body(gateway: Running) -> str:
    return json.dumps(gateway.emulators["anthropic"].requests[-1].body)


@pytest.mark.parametrize("surface", SURFACES)
def test_request_is_redacted(surface: str) -> None:
    path, body = SURFACES[surface]
    body = json.loads(json.dumps(body).replace("Hello", f"Why is {SECRET} refused?\\n{SECRET}"))
    with running_upstream(serve(page_functions()["redact_secrets"])) as hook:
        settings = (HookSettings(hook.url, "request"),)
        with running_gateway({"anthropic": HELLO}, hooks=settings) as gateway:
            assert post(gateway, path, body).status_code == 200
            assert SECRET not in last_body(gateway)
            assert "Why is [removed] refused?" in last_body(gateway)
            assert get(gateway, "/v1/models").status_code == 200
            assert len(hook.requests) == 1
            event = json.loads(hook.requests[0].body)
            assert (event["on"], event["path"]) == ("request", path)


@pytest.mark.parametrize("stream", [False, True])
def test_reply_with_a_tool_is_denied(stream: bool) -> None:
    with running_upstream(serve(page_functions()["block_tool"])) as hook:
        settings = (HookSettings(hook.url, "reply"),)
        with running_gateway({"anthropic": CALL}, hooks=settings) as gateway:
            body = {**CHAT, "tools": [TOOL], "stream": stream}
            refused = post(gateway, "/v1/chat/completions", body)
            assert refused.status_code == 400
            assert "the tool delete_database is blocked by your administrator" in refused.text
            gateway.wait_for_log("blocked by your administrator")
            assert 'reason="hook"' in get(gateway, "/metrics").text
            assert 'segue_tokens_total{kind="output"' in get(gateway, "/metrics").text


@pytest.mark.parametrize("stream", [False, True])
def test_reply_is_replaced_or_allowed(stream: bool) -> None:
    def shout(event: dict[str, Any]) -> dict[str, Any]:
        key = "text" if stream else "body"
        value = json.dumps(event[key]).replace("Hi", "HI THERE")
        return {"action": "replace", key: json.loads(value)}

    body = {**CHAT, "stream": stream}
    for function, text in ((shout, "HI THERE there."), (lambda _: {}, "Hi there.")):
        with running_upstream(serve(function)) as hook:
            settings = (HookSettings(hook.url, "reply"),)
            with running_gateway({"anthropic": HELLO}, hooks=settings) as gateway:
                reply = post(gateway, "/v1/chat/completions", body)
                assert reply.status_code == 200
                assert text in re.sub(r'"}.*?"content":"', "", reply.text, flags=re.DOTALL).replace(
                    "HI THERE", "HI THERE"
                )
                assert stream == ("data: [DONE]" in reply.text)


def test_request_is_denied_with_a_text() -> None:
    with ExitStack() as stack:
        hook = stack.enter_context(running_upstream(serve(lambda _: {"action": "deny", "message": "No."})))
        hooks = (HookSettings(hook.url, "request"),)
        with running_gateway({"anthropic": HELLO}, hooks=hooks) as gateway:
            refused = post(gateway, "/v1/messages", {**CHAT, "max_tokens": 9})
            assert (refused.status_code, refused.headers["x-should-retry"]) == (400, "false")
            assert "No." in refused.json()["error"]["message"]
            assert not gateway.emulators["anthropic"].requests
            # A body that is no JSON gets the error of the gateway.
            assert post(gateway, "/v1/messages", None).status_code == 400
            assert len(hook.requests) == 1


def fail_slowly(handler: Handler) -> None:
    handler.upstream.closed.wait(100)


def fail_with_much(handler: Handler) -> None:
    handler.begin_chunks()
    for _ in range(200):
        handler.write_chunk(b" " * 2**20)


FAILURES: dict[str, tuple[Callable[[Handler], None], str]] = {
    "hangs": (fail_slowly, "no answer within 0.3 s"),
    "status": (lambda handler: handler.reply(b"{}", 500), "it answered with 500"),
    "form": (lambda handler: handler.reply(b'{"action": "burn"}'), "its answer is not valid"),
    "empty": (lambda handler: handler.reply(b'{"action": "replace"}'), "it replaces without a"),
    "much": (fail_with_much, "its answer has more than"),
}


@pytest.mark.parametrize("on_failure", ["deny", "allow"])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("on", ["request", "reply"])
def test_hook_that_fails_follows_the_policy(on: Any, failure: str, on_failure: Any) -> None:
    answer, text = FAILURES[failure]
    with running_upstream(answer) as hook:
        settings = (HookSettings(hook.url, on, 0.3 if failure == "hangs" else 100, on_failure),)
        with running_gateway({"anthropic": HELLO}, hooks=settings) as gateway:
            response = post(gateway, "/v1/chat/completions", CHAT)
            assert response.status_code == (200 if on_failure == "allow" else 503), response.text
            gateway.wait_for_log(text)
        hook.closed.set()


def test_bad_settings_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from segue.cli.gateway_settings import load_settings
    from segue.errors import InputError

    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / ".config" / "segue" / "config.toml"
    config.parent.mkdir(parents=True)
    for line, text in (
        ('url = "ftp://x"\non = "request"', "is not a URL"),
        ('url = "http://x"\non = "never"', "on"),
        ('url = "http://x"\non = "reply"\ntimeout = 0', "timeout"),
        ('on = "reply"', "url"),
    ):
        config.write_text(f"[[gateway.hooks]]\n{line}\n")
        with pytest.raises(InputError, match=text):
            load_settings()


FORM = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n%s\r\n--x--\r\n' % SECRET.encode()


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/event-stream"])
def test_hooks_see_what_is_passed_on(kind: str, encoding: str) -> None:
    """Any body, also a compressed one, and any reply."""
    body = json.dumps({"input": f"Why is {SECRET} refused?"}).encode() if kind == "application/json" else FORM
    sent = gzip.compress(body) if encoding else body
    headers = {"content-type": kind, **({"content-encoding": encoding} if encoding else {})}

    def answer(handler: Handler) -> None:
        handler.reply(body, **{"content-type": kind})

    with running_upstream(serve(page_functions()["redact_secrets"])) as hook:
        hooks = (HookSettings(hook.url, "request"), HookSettings(hook.url, "reply"))
        with passthrough_gateway(answer, hooks=hooks) as (gateway, upstream):
            reply = httpx2.post(f"{gateway.url}/v1/embeddings", content=sent, headers=headers)
            assert reply.status_code == 200
            for data in (upstream.requests[0].body, reply.content):
                assert SECRET.encode() not in data
                assert b"[removed]" in data
            assert upstream.requests[0].headers["content-type"] == kind
            assert "content-encoding" not in upstream.requests[0].headers
            events = [json.loads(request.body) for request in hook.requests]
            assert [(event["on"], event["path"]) for event in events] == [
                ("request", "/v1/embeddings"),
                ("reply", "/v1/embeddings"),
            ]
            # There is nothing to see in a request without a body.
            assert httpx2.get(f"{gateway.url}/v1/embeddings/1").status_code == 200
            assert len(hook.requests) == 3


@pytest.mark.parametrize("on", ["request", "reply"])
def test_hook_that_denies_holds_for_what_is_passed_on(on: Any) -> None:
    def deny(_: dict[str, Any]) -> dict[str, Any]:
        return {"action": "deny", "message": "Not here."}

    with running_upstream(serve(deny)) as hook:
        route = PassthroughSettings("/v1/chat", "vendor", always=True)
        hooks = (HookSettings(hook.url, on),)
        with passthrough_gateway(hooks=hooks, passthrough=(route,)) as (gateway, upstream):
            refused = post(gateway, "/v1/chat/completions", CHAT)
            assert (refused.status_code, refused.headers["x-should-retry"]) == (400, "false")
            assert "Not here." in refused.text
            gateway.wait_for_log("Not here.")
            assert len(upstream.requests) == (on == "reply")
            assert 'reason="hook"' in get(gateway, "/metrics").text


def test_replies_that_are_too_large_for_hooks_are_not_passed_on() -> None:
    with running_upstream(serve(lambda _: {})) as hook:
        with passthrough_gateway(fail_with_much, hooks=(HookSettings(hook.url, "reply"),)) as (gateway, _):
            assert post(gateway, "/v1/embeddings", {}).status_code == 502
            gateway.wait_for_log("the response has more than")
        assert not hook.requests
