"""Canonical ids and turn keys, and the legacy prefix functions.

A canonical id is a hash of provider, raw id, tool name, turn key and index of a call, so the same history always has
the same ids.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Sequence
from hashlib import sha256

from segue.canonical.blocks import ToolCall
from segue.canonical.json import encode_json_sorted

_PREFIX = "hist_tool_"
_WELL_FORMED = re.compile(r"hist_tool_[A-Za-z0-9_-]{1,54}")
NO_IDS = frozenset({"", "null"})
"""Values of an id field that mean no id."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def short_hash(text: str | bytes, length: int = 24) -> str:
    """Return the first `length` characters of base64url(sha256(text)); 40 at most."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return b2a_base64(sha256(data).digest()[:30], newline=False)[:length].translate(_URL_SAFE).decode("ascii")


def short_hashes(texts: Sequence[bytes], length: int) -> list[str]:
    """Return the `short_hash` of each text; `length` is a multiple of four."""
    digests = b"".join([sha256(text).digest()[: length // 4 * 3] for text in texts])
    hashes = b2a_base64(digests).translate(_URL_SAFE).decode()
    return [hashes[start : start + length] for start in range(0, length * len(texts), length)]


def is_canonical(value: str | None) -> bool:
    """Return whether this is a well-formed canonical id; a malformed one is a raw id like any other."""
    return value is not None and value.startswith(_PREFIX) and _WELL_FORMED.fullmatch(value) is not None


def has_canonical(values: Sequence[str | None]) -> bool:
    """Return whether any of the values is a canonical id."""
    return _PREFIX in "|".join([value for value in values if value]) and any(map(is_canonical, values))


def canonical_tool_id(
    *,
    provider: str | None = None,
    raw_id: str | None = None,
    tool_name: str | None = None,
    turn_key: str | None = None,
    call_index: int | None = None,
) -> str:
    """Return the canonical id of a call. A well-formed canonical id given as `raw_id` passes through unchanged."""
    if raw_id is not None and is_canonical(raw_id):
        return raw_id
    return hash_tool_id(provider, raw_id, tool_name, turn_key, call_index)


def hash_tool_id(
    provider: str | None, raw_id: str | None, tool_name: str | None, turn_key: str | None, call_index: int | None
) -> str:
    """Return the hashed id, even if `raw_id` is a canonical id: a later call with the same id needs a new one."""
    index = "" if call_index is None else str(call_index)
    parts = (provider or "", raw_id or "", tool_name or "", turn_key or "", index)
    text = "|".join(parts)
    if "\\" in text or text.count("|") >= len(parts):
        text = "|".join(map(_escape, parts))
    return _PREFIX + short_hash(text)


def hash_calls(calls: Sequence[ToolCall], places: Sequence[tuple[str, int]]) -> list[str]:
    """Return the `hash_tool_id` of each call; a place is its turn key and index."""
    texts = [
        f"{call.origin.provider or ''}|{call.origin.raw_id or ''}|{call.name}|{turn_key}|{index}".encode(
            "utf-8", "surrogatepass"
        )
        for call, (turn_key, index) in zip(calls, places, strict=True)
    ]
    joined = b"".join(texts)
    if b"\\" in joined or joined.count(b"|") > 4 * len(texts):
        return [
            hash_tool_id(call.origin.provider, call.origin.raw_id, call.name, *place)
            for call, place in zip(calls, places, strict=True)
        ]
    return [_PREFIX + hashed for hashed in short_hashes(texts, 24)]


def _escape(part: str) -> str:
    return part.replace("\\", "\\\\").replace("|", "\\|")


def raw_id_or_none(value: object) -> str | None:
    """Return the raw id, or None: absent, null, `""` and the text `"null"` mean no id."""
    return value if isinstance(value, str) and value not in NO_IDS else None


def hash_reply(calls: Sequence[ToolCall]) -> str:
    """Hash the raw ids, names and arguments of a reply's calls, for the turn key of a body that has none."""
    return hash_replies([calls])[0]


def hash_replies(replies: Sequence[Sequence[ToolCall]]) -> list[str]:
    """Return the `hash_reply` of each reply, given its calls."""
    return short_hashes([encode_json_sorted(_describe_calls(calls)) for calls in replies], 16)


def _describe_calls(calls: Sequence[ToolCall]) -> list[list[object]]:
    return [
        [call.origin.raw_id, call.name, call.arguments if call.arguments_text is None else call.arguments_text]
        for call in calls
    ]


def format_turn_key(reply_hash: str, occurrence: int) -> str:
    """Return a turn key from the hash of its reply and the occurrence among equal replies."""
    return f"turn-{reply_hash}-{occurrence}"


def split_turn_key(turn_key: str) -> tuple[str, int]:
    """Return the hash of the reply and the occurrence that a turn key was made from."""
    digest, _, occurrence = turn_key.removeprefix("turn-").rpartition("-")
    return digest, int(occurrence)


# Legacy functions for histories older than canonical ids: only the prefix is replaced. Not used by the pipeline.


def _replace_prefix(value: str, prefix: str) -> str:
    if value.startswith(prefix):
        return value
    for known in (_PREFIX, "call_", "toolu_"):
        if value.startswith(known):
            return prefix + value[len(known) :]
    return prefix + value


def normalize_to_openai_tool_id(value: str) -> str:
    """Replace the prefix of an id by `call_`, or add it. A legacy function that the pipeline does not use."""
    return _replace_prefix(value, "call_")


def normalize_to_history_tool_id(value: str) -> str:
    """Replace the prefix of an id by `hist_tool_`, or add it. A legacy function that the pipeline does not use."""
    return _replace_prefix(value, _PREFIX)


def normalize_to_anthropic_tool_id(value: str) -> str:
    """Replace the prefix of an id by `toolu_`, or add it. A legacy function that the pipeline does not use."""
    return _replace_prefix(value, "toolu_")
