"""The HTTP paths of the APIs: which API and operation a caller's request belongs to.

Paths are matched by their end, because base URLs differ: `/v1/chat/completions` of one SDK is
`/compatible-mode/v1/chat/completions` of another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct

Operation = Literal["reply", "compact", "count", "models", "model", "retrieve", "items", "delete", "create", "append"]
Collection = Literal["responses", "conversations"]


class ApiPath(Struct, frozen=True):
    """The API and the operation of a caller's request.

    `model` is the model in the path, `resource` the id of what is stored in a `collection`. `stream` is set where the
    path selects streaming; `json_array` where the stream is a JSON array and not server-sent events.
    """

    api: str
    operation: Operation
    model: str | None = None
    resource: str | None = None
    collection: Collection = "responses"
    stream: bool = False
    json_array: bool = False


class _Row(Struct, frozen=True):
    """A kind of path: one of `starts`, a model or a resource, and `end`; without `starts`, only the end.

    `version` is the path segment before it, where another API has the same path without one. A variable part with
    `not_first` as its first segment is that of another kind, and so is one without a provider.
    """

    method: str
    end: str
    api: str
    operation: Operation = "reply"
    starts: tuple[str, ...] = ()
    stream: bool = False
    version: re.Pattern[str] | None = None
    not_first: frozenset[str] = frozenset()

    def find_variable(self, path: str) -> str | None:
        """Return the variable part of a path, empty if this kind has none; None if the path is of another kind.

        In time linear in the length of the path.
        """
        if not path.endswith(self.end):
            return None
        rest = path[: len(path) - len(self.end)]
        variable = ""
        if self.starts:
            at, start = max((rest.rfind(start), start) for start in self.starts)
            variable = rest[at + len(start) :]
            if at < 0 or not variable or (start in _STORED and "/" in variable):
                return None
            first, slash, _ = variable.partition("/")
            if self.not_first and (not slash or first in self.not_first):
                return None
            rest = rest[:at]
        is_other = self.version is not None and not self.version.fullmatch(rest.rpartition("/")[2])
        return None if is_other else variable


# Paths of OpenAI's Assistants API end as those of other APIs do: /v1/threads/THREAD/messages.
_ASSISTANTS = "/threads/"
_GEMINI = ("/models/", "/tunedModels/")
# The vendor's own SDKs send `models/PROVIDER/MODEL`, others leave `models/` out before a name with a slash.
_GEMINI_VERSIONS = ("/v1beta/", "/v1/", "/v1alpha/")
_GEMINI_COLLECTIONS = frozenset({"models", "tunedModels", "projects", "publishers"})
_GEMINI_METHODS: tuple[tuple[str, Operation, bool], ...] = (
    (":generateContent", "reply", False),
    (":streamGenerateContent", "reply", True),
    (":countTokens", "count", False),
)
_BEDROCK = ("/model/",)
_STORED: Mapping[str, Collection] = {"/responses/": "responses", "/conversations/": "conversations"}
_RESPONSE, _CONVERSATION = ((start,) for start in _STORED)
_PREVIEW = re.compile(r"v\d(?:alpha|beta)\d?")
_ROWS = (
    _Row("POST", "/messages/count_tokens", "anthropic", "count"),
    _Row("POST", "/messages", "anthropic"),
    _Row("POST", "/responses/input_tokens", "openai-responses", "count"),
    _Row("POST", "/responses/compact", "openai-responses", "compact"),
    _Row("POST", "/responses", "openai-responses"),
    _Row("POST", "/conversations", "openai-responses", "create"),
    _Row("GET", "/input_items", "openai-responses", "items", _RESPONSE),
    _Row("GET", "/items", "openai-responses", "items", _CONVERSATION),
    _Row("POST", "/items", "openai-responses", "append", _CONVERSATION),
    *(_Row("GET", "", "openai-responses", "retrieve", start) for start in (_RESPONSE, _CONVERSATION)),
    *(_Row("DELETE", "", "openai-responses", "delete", start) for start in (_RESPONSE, _CONVERSATION)),
    _Row("POST", "/chat/completions", "openai-chat"),
    *(
        _Row("POST", end, "gemini", operation, _GEMINI_VERSIONS, stream=is_stream, not_first=_GEMINI_COLLECTIONS)
        for end, operation, is_stream in _GEMINI_METHODS
    ),
    *(
        _Row("POST", end, "gemini", operation, _GEMINI, stream=is_stream)
        for end, operation, is_stream in _GEMINI_METHODS
    ),
    _Row("POST", "/converse", "bedrock", starts=_BEDROCK),
    _Row("POST", "/converse-stream", "bedrock", starts=_BEDROCK, stream=True),
    _Row("POST", "/count-tokens", "bedrock", "count", _BEDROCK),
    _Row("GET", "/foundation-models", "bedrock", "models"),
    _Row("GET", "/models", "gemini", "models", version=_PREVIEW),
    _Row("GET", "", "gemini", "model", ("/models/",), version=_PREVIEW),
    _Row("GET", "/models", "openai-chat", "models"),
    _Row("GET", "", "openai-chat", "model", ("/models/",)),
)
# Parts of paths that only one API has, for requests that segue does not translate.
_MARKS = (
    ("/messages", "anthropic"),
    ("/responses", "openai-responses"),
    ("/v1beta", "gemini"),
    ("/v1alpha", "gemini"),
    ("/model/", "bedrock"),
)


def find_api_path(method: str, path: str, headers: Mapping[str, str]) -> ApiPath | None:
    """Return the path of a request; None if segue does not translate it. `path` may have a query."""
    path, _, query = path.partition("?")
    if _ASSISTANTS in path or not path.startswith("/"):
        return None
    path, method = path.removesuffix("/"), method.upper()
    for row in _ROWS:
        variable = row.find_variable(path) if row.method == method else None
        if variable is None:
            continue
        api = _model_list_api(headers) or row.api if row.operation in ("models", "model") else row.api
        value = unquote(variable) or None
        collection: Collection | None = next((_STORED[start] for start in row.starts if start in _STORED), None)
        return ApiPath(
            api,
            row.operation,
            None if collection else value,
            value if collection else None,
            collection or "responses",
            stream=row.stream,
            json_array=row.stream and api == "gemini" and parse_qs(query).get("alt") != ["sse"],
        )
    return None


def guess_api(method: str, path: str, headers: Mapping[str, str]) -> str:
    """Return the API that a caller most likely expects errors of: that of the path, or else of a part or a header."""
    api_path = find_api_path(method, path, headers)
    if api_path is not None:
        return api_path.api
    if _ASSISTANTS in path:
        return "openai-chat"
    return _model_list_api(headers) or next((api for mark, api in _MARKS if mark in path), "openai-chat")


def _model_list_api(headers: Mapping[str, str]) -> str | None:
    """Return the API of a request for the model list, whose path several APIs share."""
    names = {name.lower() for name in headers}
    if "anthropic-version" in names:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in names else None
