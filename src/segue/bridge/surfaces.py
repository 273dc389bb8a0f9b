"""The HTTP surfaces of the APIs: which API and operation a caller's request belongs to.

Paths are matched by their end, because base URLs differ: `/v1/chat/completions` of one SDK is
`/compatible-mode/v1/chat/completions` of another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct

Operation = Literal["reply", "count", "models", "model", "retrieve", "items", "delete"]


class Surface(Struct, frozen=True):
    """The API and the operation of a caller's request.

    `model` is the model in the path, `resource` the id of a stored response. `stream` is set where the path selects
    streaming; `json_array` where the stream is a JSON array and not server-sent events.
    """

    api: str
    operation: Operation
    model: str | None = None
    resource: str | None = None
    stream: bool = False
    json_array: bool = False


class _Row(Struct, frozen=True):
    method: str
    pattern: re.Pattern[str]
    api: str
    operation: Operation
    stream: bool = False


def _row(method: str, pattern: str, api: str, operation: Operation = "reply", *, stream: bool = False) -> _Row:
    return _Row(method, re.compile(rf"(?:/[^?]*)?{pattern}/?"), api, operation, stream)


# Paths of OpenAI's Assistants API end as those of other APIs do: /v1/threads/THREAD/messages.
_ASSISTANTS = "/threads/"
_GEMINI = r"/(?:models|tunedModels)/(?P<model>.+)"
_ROWS = (
    _row("POST", "/messages/count_tokens", "anthropic", "count"),
    _row("POST", "/messages", "anthropic"),
    _row("POST", "/responses/input_tokens", "openai-responses", "count"),
    _row("POST", "/responses", "openai-responses"),
    _row("GET", "/responses/(?P<resource>[^/]+)/input_items", "openai-responses", "items"),
    _row("GET", "/responses/(?P<resource>[^/]+)", "openai-responses", "retrieve"),
    _row("DELETE", "/responses/(?P<resource>[^/]+)", "openai-responses", "delete"),
    _row("POST", "/chat/completions", "openai-chat"),
    _row("POST", f"{_GEMINI}:generateContent", "gemini"),
    _row("POST", f"{_GEMINI}:streamGenerateContent", "gemini", stream=True),
    _row("POST", f"{_GEMINI}:countTokens", "gemini", "count"),
    _row("POST", "/model/(?P<model>.+)/converse", "bedrock"),
    _row("POST", "/model/(?P<model>.+)/converse-stream", "bedrock", stream=True),
    _row("POST", "/model/(?P<model>.+)/count-tokens", "bedrock", "count"),
    _row("GET", "/foundation-models", "bedrock", "models"),
    _row("GET", r"/v\d(?:alpha|beta)\d?/models", "gemini", "models"),
    _row("GET", r"/v\d(?:alpha|beta)\d?/models/(?P<model>.+)", "gemini", "model"),
    _row("GET", "/models", "openai-chat", "models"),
    _row("GET", "/models/(?P<model>.+)", "openai-chat", "model"),
)


def find_surface(method: str, path: str, headers: Mapping[str, str]) -> Surface | None:
    """Return the surface of a request; None if segue does not translate it. `path` may have a query."""
    path, _, query = path.partition("?")
    if _ASSISTANTS in path:
        return None
    for row in _ROWS:
        match = row.pattern.fullmatch(path) if row.method == method.upper() else None
        if match is None:
            continue
        found = match.groupdict()
        api = _model_list_api(headers) or row.api if row.operation in ("models", "model") else row.api
        model, resource = found.get("model"), found.get("resource")
        return Surface(
            api,
            row.operation,
            unquote(model) if model is not None else None,
            unquote(resource) if resource is not None else None,
            stream=row.stream,
            json_array=row.stream and api == "gemini" and parse_qs(query).get("alt") != ["sse"],
        )
    return None


def _model_list_api(headers: Mapping[str, str]) -> str | None:
    """Return the API of a request for the model list, whose path several APIs share."""
    names = {name.lower() for name in headers}
    if "anthropic-version" in names:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in names else None
