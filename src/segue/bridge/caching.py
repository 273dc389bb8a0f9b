"""The prompt-cache policy: changes to a body that let the provider cache the beginning of its prompt.

All functions take and return the bytes of a body. They decode one level at a time and copy the other values unread, so
that a long conversation is only scanned. The prompt itself stays the same, except for Claude Code's billing header. A
body of another shape than its API's is returned unchanged: this module rejects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from segue.canonical.json import decode_members, encode_json
from segue.models import Model, parse_model
from segue.wire.registry import WIRES

# Anthropic and Bedrock accept 4 markers in a body: on the last tool, the last system block, and these messages.
_MARKED_MESSAGES = 2
# Between two messages, as they are rendered, and the part of a body in which the last ones are searched first.
_MESSAGE_GAP, _LAST_BYTES = b'},{"role":', 1 << 14
_CACHE_CONTROL = Raw(b'{"type":"ephemeral"}')
_CACHE_POINT = Raw(b'{"cachePoint":{"type":"default"}}')
# The user's content blocks that may have a marker.
_MARKABLE_TYPES = frozenset({"text", "image", "document", "search_result", "tool_result"})
_NOVA_LINES = frozenset({"micro", "lite", "pro", "premier"})

# Providers that document `prompt_cache_key`; other servers with the same APIs may reject it.
_CACHE_KEY_PROVIDERS = frozenset({"openai", "openai-chat", "azure"})
_CACHE_KEY = "prompt_cache_key"
_CACHE_KEY_PREFIX = "segue-"
# With the prefix less than 64 characters, the limit of OpenAI.
_CACHE_KEY_DIGITS = 40

_BILLING_HEADER = "x-anthropic-billing-header:"
_BILLING_LINE = re.compile(rf"\s*{_BILLING_HEADER}[^\n]*\n*")
BILLING_HEADER_REMOVED = (
    "the line x-anthropic-billing-header was removed from the system text: it differs in each request, "
    "so that a prompt cache would never be read"
)
"""The text of the finding about a removed billing header."""

Members: TypeAlias = dict[str, Raw]
_EMPTY_LIST = Raw(b"[]")
_NULL = Raw(b"null")
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_string = msgspec.json.Decoder(str).decode


class _Role(Struct, gc=False):
    role: str = ""


_decode_role = msgspec.json.Decoder(_Role).decode


def _edit(data: bytes, edit: Callable[[Members], None]) -> bytes:
    """Return a body with its members edited; the same object if nothing was edited, or if it has another shape."""
    try:
        members = decode_members(data)
        before = members.copy()
        edit(members)
    except (msgspec.DecodeError, KeyError):
        return data
    if members == before:
        return data
    # A long conversation is copied once: that costs more than all else.
    parts: list[bytes | memoryview] = []
    for key, raw in members.items():
        parts += [b",", encode_json(key), b":", memoryview(raw)]
    return b"".join((b"{", *parts[1:], b"}"))


# ------------------------------------------------------------------------------------------------------------- markers


def place_markers(data: bytes, api: str, model: str | None = None) -> bytes:
    """Mark the last tool, the last system block and the last two user messages of a body to be cached.

    Only some APIs have markers. On Bedrock the model decides which; `model` is its name if the one in the body is
    missing or an alias. A body that has markers is returned unchanged, so that the caller's own are kept.
    """
    marker = WIRES[api].cache_marker
    if marker == "cache_control" and not _has_markers(data, b'"cache_control"', _AnthropicBody):
        return _edit(data, _place_cache_controls)
    if marker == "cachePoint" and not _has_markers(data, b'"cachePoint"', _BedrockBody):
        return _edit(data, partial(_place_cache_points, model=model))
    return data


class _Part(Struct, gc=False, rename={"cache_point": "cachePoint"}):
    """A message, content block or tool: its marker, and its content."""

    cache_control: Any = None
    cache_point: Any = None
    content: list[_Part] | str | dict[str, Raw] | None = None


class _AnthropicBody(Struct, gc=False):
    messages: list[_Part]
    system: list[_Part] | str | None = None
    tools: list[_Part] | None = None
    cache_control: Any = None

    def is_marked(self) -> bool:
        return self.cache_control is not None or any(map(_is_any_marked, (self.messages, self.system, self.tools)))


class _ToolConfig(Struct, gc=False, frozen=True):
    tools: list[_Part] = []


class _BedrockBody(Struct, gc=False, rename={"tool_config": "toolConfig"}):
    messages: list[_Part]
    system: list[_Part] | None = None
    tool_config: _ToolConfig = _ToolConfig()

    def is_marked(self) -> bool:
        return any(map(_is_any_marked, (self.messages, self.system, self.tool_config.tools)))


def _has_markers(data: bytes, key: bytes, body_type: type[_AnthropicBody | _BedrockBody]) -> bool:
    """Return whether a body has a marker. Its key may also be a tool's parameter, so that it must be decoded."""
    if key not in data:
        return False
    try:
        return msgspec.json.decode(data, type=body_type).is_marked()
    except msgspec.DecodeError:
        return True


def _is_any_marked(parts: object) -> bool:
    return isinstance(parts, list) and any(
        part.cache_control is not None or part.cache_point is not None or _is_any_marked(part.content)
        for part in cast("list[_Part]", parts)
    )


def _place_cache_controls(members: Members) -> None:
    # A tool can't be both deferred and marked.
    _mark_member(members, "tools", partial(_mark_last, accepts=lambda tool: tool.get("defer_loading") != Raw(b"true")))
    _mark_member(members, "system", partial(_mark_last, accepts=_is_markable))
    _mark_messages(members, partial(_mark_last, accepts=_is_markable))


def _place_cache_points(members: Members, *, model: str | None) -> None:
    found = parse_model(model or msgspec.json.decode(members.get("modelId", _NULL)))
    is_claude = _is_caching_claude(found)
    if not is_claude and not (found.family == "nova" and found.line in _NOVA_LINES):
        return
    if is_claude and "toolConfig" in members:
        config = decode_members(members["toolConfig"])
        _mark_member(config, "tools", _append_point)
        members["toolConfig"] = Raw(encode_json(config))
    _mark_member(members, "system", _append_point)
    # Nova accepts a cache point neither among tools nor after a result.
    _mark_messages(members, _append_point if is_claude else _append_point_to_text)


def _is_caching_claude(model: Model) -> bool:
    """Return whether a Claude model on Bedrock has cache points: from 3.7 on, Haiku from 3.5 on."""
    return model.family == "claude" and model.at_least(3, 5 if model.line == "haiku" else 7)


_Mark: TypeAlias = Callable[[list[Raw]], list[Raw] | None]
"""Returns the blocks or tools with a marker; None if there is no place for one."""


def _mark_member(members: Members, key: str, mark: _Mark) -> None:
    marked = mark(_decode_blocks(members.get(key, _EMPTY_LIST)))
    if marked is not None:
        members[key] = Raw(encode_json(marked))


def _mark_messages(members: Members, mark: _Mark) -> None:
    view = memoryview(members["messages"])
    start, messages = _decode_last_messages(view)
    for index in _find_last_user_messages(messages):
        message = decode_members(messages[index])
        _mark_member(message, "content", mark)
        messages[index] = Raw(encode_json(message))
    members["messages"] = Raw(b"".join((view[:start], encode_json(messages)[1:])))


def _decode_last_messages(view: memoryview) -> tuple[int, list[Raw]]:
    """Return the last messages, at least those that are marked, and where they begin."""
    data = bytes(view[-_LAST_BYTES:])
    stop = len(data)
    while (stop := data.rfind(_MESSAGE_GAP, 0, stop)) >= 0:
        start = stop + len(b"},")
        try:
            messages = _decode_list(b"[%b" % data[start:])
        except msgspec.DecodeError:
            # Inside of a message, after which the list does not end.
            continue
        if len([*_find_last_user_messages(messages)]) == _MARKED_MESSAGES:
            return len(view) - len(data) + start, messages
    return 1, _decode_list(view)


def _find_last_user_messages(messages: list[Raw]) -> Iterator[int]:
    """Yield the index of the last user message, and of the last one before the reply: the end of the request before."""
    count, follows_user = 0, False
    for index in reversed(range(len(messages))):
        is_user = _decode_role(messages[index]).role == "user"
        if is_user and not follows_user:
            yield index
            count += 1
            if count == _MARKED_MESSAGES:
                return
        follows_user = is_user


def _mark_last(blocks: list[Raw], *, accepts: Callable[[Members], bool]) -> list[Raw] | None:
    for index in reversed(range(len(blocks))):
        block = decode_members(blocks[index])
        if accepts(block):
            blocks[index] = Raw(encode_json({**block, "cache_control": _CACHE_CONTROL}))
            return blocks
    return None


def _is_markable(block: Members) -> bool:
    kind = _decode_string(block["type"])
    return kind in _MARKABLE_TYPES and (kind != "text" or _has_text(block))


def _append_point(blocks: list[Raw]) -> list[Raw] | None:
    last = decode_members(blocks[-1]) if blocks else {}
    return None if not last or ("text" in last and not _has_text(last)) else [*blocks, _CACHE_POINT]


def _append_point_to_text(blocks: list[Raw]) -> list[Raw] | None:
    return _append_point(blocks) if blocks and "text" in decode_members(blocks[-1]) else None


def _has_text(block: Members) -> bool:
    """Return whether a text block has text: both APIs reject a marker on an empty one."""
    return bool(_decode_string(block["text"]).strip())


def _decode_blocks(content: Raw) -> list[Raw]:
    """Return the blocks of a content; a string is one text block, null is none."""
    if content == _NULL:
        return []
    return _decode_list(content) if _is_list(content) else [Raw(encode_json({"type": "text", "text": content}))]


def _is_list(value: Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b"["


# ----------------------------------------------------------------------------------------------------------- cache key


def place_cache_key(data: bytes, *, provider: str, client: str, route: str) -> bytes:
    """Set `prompt_cache_key` in a body for OpenAI or Azure that has none; return any other body unchanged.

    All requests of a conversation have the same key, and the provider routes equal keys to the same cache. `provider`
    is its name in the catalogue; `client` and `route` are any names of the caller and of the route, but no secrets.
    """
    if provider not in _CACHE_KEY_PROVIDERS:
        return data
    return _edit(data, partial(_place_cache_key, client=client, route=route))


def _place_cache_key(members: Members, *, client: str, route: str) -> None:
    if members.get(_CACHE_KEY, _NULL) == _NULL:
        members[_CACHE_KEY] = Raw(encode_json(cache_key(members, client, route)))


def cache_key(members: Members, client: str, route: str) -> str:
    """Return the cache key of a body: from client, route, and the conversation up to the first user message."""
    digest = sha256(encode_json([client, route, members.get("instructions", _NULL)]))
    conversation = members["messages" if "messages" in members else "input"]
    for item in _decode_list(conversation) if _is_list(conversation) else [conversation]:
        digest.update(item)
        if _is_list(conversation) and _decode_role(item).role == "user":
            break
    return _CACHE_KEY_PREFIX + digest.hexdigest()[:_CACHE_KEY_DIGITS]


# ------------------------------------------------------------------------------------------------------ billing header


def has_billing_header(members: Mapping[str, Raw]) -> bool:
    """Return whether the fields of an Anthropic body may have Claude Code's billing header: most have none."""
    return _BILLING_HEADER.encode() in bytes(members.get("system", b""))


def remove_billing_header(data: bytes) -> tuple[bytes, str | None]:
    """Remove Claude Code's billing header from the system text of an Anthropic body, for any provider but Anthropic.

    Returns the body, and the text of the finding if there was a header. The header is a line at the start of a block,
    usually alone in the first one.
    """
    edited = _edit(data, _remove_billing_lines)
    return edited, None if edited is data else BILLING_HEADER_REMOVED


def _remove_billing_lines(members: Members) -> None:
    system = members["system"]
    blocks = _decode_list(system) if _is_list(system) else [Raw(encode_json({"text": system}))]
    kept = [cut for block in blocks if (cut := _cut_header(block)) is not None]
    if kept == blocks:
        return
    if not kept:
        del members["system"]
    elif _is_list(system):
        members["system"] = Raw(encode_json(kept))
    else:
        members["system"] = decode_members(kept[0])["text"]


def _cut_header(block: Raw) -> Raw | None:
    """Return a system block without the header: the same object if it has none, None if no text is left."""
    members = decode_members(block)
    text = _decode_string(members["text"])
    header = _BILLING_LINE.match(text)
    if header is None:
        return block
    rest = text[header.end() :]
    return Raw(encode_json({**members, "text": rest})) if rest else None
