"""Removes secrets from an exchange before it is stored: credentials, and what `segue.redaction` finds in bodies.

The same request gives the same result with any credentials, so that a replayed request is equal to its recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from segue.canonical.json import encode_json, parse_json
from segue.emulator.http_messages import CONNECTION_HEADERS, HttpRequest
from segue.emulator.recordings import RecordedBody, RequestPart
from segue.emulator.stream_pieces import Payload, find_payloads, join_edits
from segue.errors import InputError
from segue.redaction import find_secrets, redact, redact_values

REMOVED = "[removed]"
_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:(?:api)?key|sig|signature|token|secret|credentials?|authorization|cookies?|password)$", re.IGNORECASE
)
# They identify the account.
_ACCOUNT_HEADERS = frozenset(
    {"anthropic-organization-id", "openai-organization", "openai-project", "x-goog-user-project", "x-forwarded-for"}
)
_MIN_SECRET = 8
_MAX_PASSES = 5
_SCHEME = re.compile(r"(?:bearer|basic)\s+", re.IGNORECASE)
_COOKIE_VALUE = re.compile(r"=([^;\s]+)")


class SecretRemover:
    """Removes the secrets of one exchange; the credentials of its request are removed from the bodies too."""

    def __init__(self, http_request: HttpRequest) -> None:
        headers, query = http_request.headers, http_request.query
        found = [_SCHEME.sub("", value, 1) for name, value in headers.items() if _SECRET_NAME.search(name)]
        found += _COOKIE_VALUE.findall(headers.get("cookie", ""))
        found += [value for name, value in query.items() if _SECRET_NAME.search(name)]
        known = {value for value in found if len(value) >= _MIN_SECRET}
        # Longest first: one value may contain another.
        longest_first = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def clean_request(self, http_request: HttpRequest) -> RequestPart:
        """Return a request as it is stored and compared."""
        return RequestPart(
            http_request.method,
            self.clean_text(http_request.path),
            self.clean_query(http_request.raw_query),
            self.clean_request_headers(http_request.headers),
            self._clean_request_body(http_request.body),
        )

    def _clean_request_body(self, data: bytes) -> RecordedBody:
        if not data:
            return RecordedBody()
        try:
            return RecordedBody(json=self.clean_value(parse_json(data)[0]))
        except InputError:
            pass
        try:
            return RecordedBody(text=self.clean_text(data.decode()))
        except UnicodeDecodeError:
            return RecordedBody(sha256=sha256(data).hexdigest())

    def clean_request_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name: REMOVED if _is_secret_header(name) else self.clean_text(value)
            for name, value in headers.items()
            if name not in CONNECTION_HEADERS
        }

    def clean_response_headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        return [
            (name, self.clean_text(value))
            for name, value in headers
            if name not in CONNECTION_HEADERS and not _is_secret_header(name)
        ]

    def clean_query(self, query: str) -> str:
        """Return an escaped query without the values of keys and signatures."""
        parts = [part.partition("=") for part in query.split("&")]
        return "&".join(
            f"{name}={REMOVED}" if _SECRET_NAME.search(name) else self.clean_text(f"{name}{equals}{value}")
            for name, equals, value in parts
        )

    def clean_text(self, text: str) -> str:
        return redact(self._known.sub(REMOVED, text))

    def clean_value(self, value: Any) -> Any:
        """Return a JSON value without secrets."""
        return redact_values(self._replace_known(value))

    def clean_chunks(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Return the chunks of a response without secrets, also without those that are split over several deltas."""
        data = b"".join(chunks)
        payloads = find_payloads(data)
        values = [_decode(payload) for payload in payloads]
        changed = self._clean_values(values)
        edits: list[tuple[Payload, bytes]] = []
        for index, (payload, value) in enumerate(zip(payloads, values, strict=True)):
            if isinstance(value, _Undecoded):
                clean = self._clean_bytes(payload.data)
            else:
                clean = encode_json(value) if index in changed else payload.data
            if clean != payload.data:
                edits.append((payload, clean))
        return join_edits(data, edits, list(map(len, chunks))) if edits else list(chunks)

    def _clean_values(self, values: list[Any]) -> set[int]:
        """Remove the secrets of decoded payloads, in place; returns the indexes of the changed ones.

        Split secrets come first: the first half of a key may look like a key itself. Once a secret is removed, the text
        beside it can be found as another one.
        """
        changed: set[int] = set()
        for _ in range(_MAX_PASSES):
            found = self._remove_split_secrets(values)
            for index, value in enumerate(values):
                if not isinstance(value, _Undecoded) and (clean := self.clean_value(value)) != value:
                    values[index] = clean
                    found.add(index)
            if not found:
                break
            changed |= found
        return changed

    def _clean_bytes(self, data: bytes) -> bytes:
        try:
            return self.clean_text(data.decode()).encode()
        except UnicodeDecodeError:
            return self.clean_text(data.decode("latin-1")).encode("latin-1")

    def _replace_known(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._known.sub(REMOVED, value)
        if isinstance(value, dict):
            return {key: self._replace_known(inner) for key, inner in cast("dict[str, Any]", value).items()}
        return [self._replace_known(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value

    # -------------------------------------------------------------------------------------- secrets over several deltas

    def _remove_split_secrets(self, values: list[Any]) -> set[int]:
        """Remove the secrets in the joined deltas of each field, in place; returns the indexes of the changed values.

        A model's text arrives in pieces, so that no event contains the whole of a key.
        """
        fields: dict[object, list[_TextField]] = {}
        for index, value in enumerate(values):
            # Gemini streams a list of events if the client does not request server-sent ones.
            for event in cast("list[Any]", value) if isinstance(value, list) else [value]:
                kind = cast("dict[str, Any]", event).get("type") if isinstance(event, dict) else None
                for field in _find_texts(event, index, (str(kind),)):
                    fields.setdefault(field.name, []).append(field)
        changed: set[int] = set()
        for pieces in fields.values():
            # The same text in every event is no delta: the id of the reply, the model.
            if len({piece.text for piece in pieces}) > 1:
                changed |= self._clean_pieces(pieces)
        return changed

    def _clean_pieces(self, pieces: list[_TextField]) -> set[int]:
        text = "".join(piece.text for piece in pieces)
        known = [(*match.span(), "credential") for match in self._known.finditer(text)]
        spans = sorted([*known, *find_secrets(text)])
        changed: set[int] = set()
        if not spans:
            return changed
        start = 0
        for piece in pieces:
            end = start + len(piece.text)
            clean, position = "", start
            for first, last, name in spans:
                if first >= end or last <= position:
                    continue
                clean += text[position : max(position, first)]
                clean += f"[{name} removed]" if first >= position else ""
                position = min(end, last)
            clean += text[position:end]
            if clean != piece.text:
                piece.replace(clean)
                changed.add(piece.index)
            start = end
        return changed


class _TextField:
    """A text in the payload with this index. Texts of one field have the same name."""

    def __init__(self, index: int, name: tuple[object, ...], parent: Any, key: str | int) -> None:
        self.index = index
        self.name = name
        self._parent, self._key = parent, key
        self.text: str = parent[key]

    def replace(self, text: str) -> None:
        self._parent[self._key] = text


def _find_texts(value: Any, index: int, name: tuple[object, ...]) -> Iterable[_TextField]:
    """Yield all texts in a payload. The indexes of blocks and choices are part of a field's name."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        indexes = [f"{key}={inner}" for key, inner in members.items() if key.lower().endswith("index")]
        name = (*name, *indexes)
        items: list[tuple[str | int, Any]] = list(members.items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Any]", value)))
    else:
        return
    for key, inner in items:
        if isinstance(inner, str):
            yield _TextField(index, (*name, key), value, key)
        else:
            yield from _find_texts(inner, index, (*name, key))


class _Undecoded:
    """A payload that is not JSON."""


def _decode(payload: Payload) -> Any:
    try:
        return parse_json(payload.data)[0]
    except InputError:
        return _Undecoded()


def _is_secret_header(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None or name in _ACCOUNT_HEADERS
