"""A request as a provider wants it: address, headers, and the body in pieces. Nothing here sends, or reads a clock.

Where the address names the model, the body must not; it is taken out of the piece that it stands in, and no other is
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import metadata
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from segue.runtime import aws
from segue.runtime.providers import Endpoint

__all__ = ["Letter", "inquiry", "request"]

_JSON = "application/json"
_EVENTS = "text/event-stream"
_AMAZON_EVENTS = "application/vnd.amazon.eventstream"
_KEY_HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key", "azure-foundry": "api-key"}
_RESPONSES = frozenset({"openai-responses", "azure-foundry"})
# Where the model stands in the address, and the key that it has in the body.
_ADDRESSED = {"gemini": b"model", "bedrock": b"modelId"}
_ANTHROPIC_VERSION = "2023-06-01"
_GEMINI_VERSION = re.compile(r"/v\d+(?:alpha|beta)?\d*$")
_RUNTIME = "bedrock-runtime."


class Letter(NamedTuple):
    """A request before it is sent. `headers` hold the key: they are shown to nobody."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes] = ()

    def __repr__(self) -> str:
        return f"<Letter {self.method} {self.url}>"


def request(
    endpoint: Endpoint,
    fragments: Sequence[bytes],
    *,
    now: datetime,
    credentials: aws.Credentials | None = None,
) -> Letter:
    """The request whose answer is a stream. `credentials` are what the endpoint's signer gave; `now` is UTC."""
    body = list(fragments)
    if (key := _ADDRESSED.get(endpoint.api)) is not None:
        body = _without(body, key)
    accept = _AMAZON_EVENTS if endpoint.api == "bedrock" else _EVENTS
    headers = {"content-type": _JSON, "accept": accept}
    return _signed(endpoint, Letter("POST", _address(endpoint), headers, body), now, credentials)


def inquiry(endpoint: Endpoint, *, now: datetime, credentials: aws.Credentials | None = None) -> Letter:
    """A request that costs nothing, and is refused where the key is not taken: the list of models, as a rule."""
    base = endpoint.base_url
    if endpoint.api == "anthropic":
        url = f"{_anthropic(base)}/v1/models?limit=1000"
    elif endpoint.api == "gemini":
        url = f"{_gemini(base)}/models?pageSize=1000"
    elif endpoint.api == "bedrock":
        # The list is kept beside the door where models are asked.
        place = urlsplit(base)
        host = place.netloc
        host = "bedrock." + host.removeprefix(_RUNTIME) if host.startswith(_RUNTIME) else host
        url = urlunsplit((place.scheme, host, f"{place.path}/foundation-models", "", ""))
    elif endpoint.profile == "openrouter":
        # Its list is open to everybody.
        url = f"{base}/key"
    else:
        url = f"{base}/models"
    return _signed(endpoint, Letter("GET", url, {"accept": _JSON}), now, credentials)


def _address(endpoint: Endpoint) -> str:
    base, model = endpoint.base_url, quote(endpoint.model, safe="")
    if endpoint.api == "anthropic":
        return f"{_anthropic(base)}/v1/messages"
    if endpoint.api == "gemini":
        # Tuned models have a folder of their own.
        folder, _, name = endpoint.model.rpartition("/")
        return f"{_gemini(base)}/{folder or 'models'}/{quote(name, safe='')}:streamGenerateContent?alt=sse"
    if endpoint.api == "bedrock":
        return f"{base}/model/{model}/converse-stream"
    return f"{base}/responses" if endpoint.api in _RESPONSES else f"{base}/chat/completions"


def _anthropic(base: str) -> str:
    """Some write the version into the address, some don't."""
    return base.removesuffix("/v1")


def _gemini(base: str) -> str:
    return base if _GEMINI_VERSION.search(base) else f"{base}/v1beta"


def _signed(endpoint: Endpoint, letter: Letter, now: datetime, credentials: aws.Credentials | None) -> Letter:
    headers = {**letter.headers, "user-agent": _agent(), **dict(endpoint.headers)}
    if endpoint.api == "anthropic":
        headers.setdefault("anthropic-version", _ANTHROPIC_VERSION)
    if endpoint.key is not None:
        name = "authorization" if endpoint.bearer else _KEY_HEADERS.get(endpoint.api, "authorization")
        headers[name] = endpoint.key.reveal() if name != "authorization" else f"Bearer {endpoint.key.reveal()}"
    elif credentials is not None:
        told = {name: value for name, value in headers.items() if name == "content-type"}
        headers |= aws.sign(
            credentials,
            method=letter.method,
            url=letter.url,
            headers=told,
            body=letter.body,
            region=endpoint.region or "us-east-1",
            service="bedrock",
            now=now,
        )
    return letter._replace(headers=headers)


@cache
def _agent() -> str:
    return f"segue/{metadata.version('segue')}"


# ----------------------------------------------------------------------------------------- the model out of the body


def _without(body: list[bytes], key: bytes) -> list[bytes]:
    """The body without a key that stands outside the conversation: in the first piece, or in the last."""
    first = (
        re.compile(rb'\{\s*"%b"\s*:\s*"(?:[^"\\]|\\.)*"\s*(,?)\s*' % key, re.DOTALL).match(body[0]) if body else None
    )
    if first is not None:
        return [b"{" + body[0][first.end() :], *body[1:]]
    named = re.compile(rb'"%b"\s*:' % key)
    if not body or not any(named.search(piece) for piece in {body[0], body[-1]}):
        return body
    # It is rare, and may be no more than a word that somebody said: the whole is read, one level deep.
    members = msgspec.json.decode(b"".join(body), type=dict[str, msgspec.Raw])
    if members.pop(key.decode(), None) is None:
        return body
    return [msgspec.json.encode(members)]
