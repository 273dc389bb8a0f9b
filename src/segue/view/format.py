"""Text for blocks, states and numbers, shared by all views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import UNSET, Struct

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Opaque,
    Speaker,
    State,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    join_texts,
    state_of,
)
from segue.canonical.compress.plan import MessageChange
from segue.canonical.json import encode_json_text
from segue.errors import format_count

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
SPEAKERS: dict[Speaker, str] = {"system": "System", "human": "User", "ai": "Assistant", "tool": "Tool"}
STATES: dict[State, str] = {
    "pending": "no result yet",
    "complete": "",
    "error": "failed",
    "denied": "denied",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_MAX_CHANGES = 20
_MIME = re.compile(r"(image|audio|video)/[A-Za-z0-9.+-]{1,64}")


class ResultIndex(Struct):
    """Tool results by call id, and the ids of the calls in the same messages."""

    results: dict[str, list[ToolResponse]]
    call_ids: set[str]

    def results_of(self, call: ToolCall) -> list[ToolResponse]:
        return self.results.get(call.id, [])

    def is_paired(self, response: ToolResponse) -> bool:
        """Return whether the call of this result is in the messages."""
        return response.call_id in self.call_ids


def index_results(messages: Iterable[Message]) -> ResultIndex:
    index = ResultIndex({}, set())
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.id:
                index.call_ids.add(block.id)
            elif isinstance(block, ToolResponse) and block.call_id:
                index.results.setdefault(block.call_id, []).append(block)
    return index


def format_arguments(call: ToolCall) -> str:
    """Return the arguments as JSON on one line, or their exact text where they are not valid JSON."""
    if call.arguments_text is not None:
        return call.arguments_text
    return call.arguments if isinstance(call.arguments, str) else encode_json_text(call.arguments)


def format_result(response: ToolResponse) -> str:
    """Return the text of a result; media as type, name and size."""
    if response.content is None:
        return "" if response.structured is UNSET else encode_json_text(response.structured)
    text = join_texts(_format_block(block) for block in response.content)
    return text if text or response.structured is UNSET else encode_json_text(response.structured)


def _format_block(block: Block) -> str:
    match block:
        case Text() | Thinking():
            return block.text
        case Code():
            return block.code
        case Media():
            return f"[{format_media(block)}]"
        case Opaque():
            return f"[{format_opaque(block)}]"
        case ToolCall():
            return f"{block.name} {format_arguments(block)}"
        case ToolResponse():
            return format_result(block)
        case _:  # pragma: no cover
            assert_never(block)


def format_state(results: list[ToolResponse]) -> str:
    """Return the state of a call; empty where it completed."""
    return STATES[state_of(results[-1]) if results else "pending"]


def format_media(media: Media) -> str:
    location = media.url if media.url and not media.url.startswith("data:") else media.file_id
    size = _format_bytes(len(media.data) * 3 // 4) if media.data else None
    return ", ".join(filter(None, [media.mime or media.kind, media.name, size, location]))


def is_shown(block: Opaque) -> bool:
    """Return whether this is part of the conversation, or stands for a part of it."""
    return block.omit_reason in (None, "compaction")


def format_opaque(block: Opaque) -> str:
    if block.omit_reason == "compaction":
        return f"{format_compaction(block)}: {block.text or 'only its provider can read it'}"
    return f"{block.kind}: {block.text}" if block.text else block.kind


def format_compaction(block: Opaque) -> str:
    count = (block.extra or {}).get("messages")
    history = f"the {format_count(count, 'message')} before it" if count else "what was before it"
    return f"{block.kind} in place of {history}"


def data_url(media: Media) -> str | None:
    """Return a data URL with the media; None where the data is missing or the type is not image, audio or video."""
    mime, data = media.mime, media.data
    if data is None and media.url and media.url.startswith("data:"):
        head, _, data = media.url.partition(",")
        mime = head[5:].removesuffix(";base64") if head.endswith(";base64") else None
    if not data or not mime or not _MIME.fullmatch(mime) or not _BASE64.fullmatch(data):
        return None
    return f"data:{mime};base64,{''.join(data.split())}"


def _format_bytes(count: int) -> str:
    for unit in ("bytes", "kB"):
        if count < 1000:
            return f"{count} {unit}"
        count //= 1000
    return f"{count} MB"


def format_short(number: int) -> str:
    """Format a number with k or M: 12345 is 12.3k."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)


def format_duration(span: float) -> str:
    """Format a duration: 0.2 s, 12 s, 2 min 5 s."""
    if span < 10:
        return f"{span:.1f} s"
    if span < _MINUTE:
        return f"{span:.0f} s"
    return f"{int(span) // _MINUTE} min {int(span) % _MINUTE} s"


def format_money(amount: float) -> str:
    """Format dollars, with more decimals for amounts below one."""
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def format_ago(span: float) -> str:
    """Format an age, rounded."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if span >= size:
            return f"{int(span // size)} {unit} ago"
    return "just now"


def format_changes(changes: Sequence[MessageChange]) -> Iterator[str]:
    """Describe the changes of a compression. Adjacent messages with the same action share a line."""
    runs: list[list[MessageChange]] = []
    for change in changes:
        last = runs[-1][-1] if runs else None
        if last is not None and (last.action, last.index + 1) == (change.action, change.index):
            runs[-1].append(change)
        else:
            runs.append([change])
    shown = runs if len(runs) <= _MAX_CHANGES else runs[: _MAX_CHANGES - 1]
    for run in shown:
        line = f"messages {run[0].index + 1:,} to {run[-1].index + 1:,} were {run[0].action}: {_format_saved(run)}"
        yield line if len(run) > 1 else str(run[0])
    rest = [change for run in runs[len(shown) :] for change in run]
    if rest:
        yield f"… and {format_count(len(rest), 'more message')}: {_format_saved(rest)}"


def _format_saved(changes: Sequence[MessageChange]) -> str:
    return f"{sum(change.before for change in changes):,} → {sum(change.after for change in changes):,} tokens"


def shorten(text: str, width: int) -> str:
    """Truncate a text to `width` characters on one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else f"{line[: width - 1]}…"


def replace_controls(text: str) -> str:
    """Replace control characters, bidirectional overrides and lone surrogates by U+FFFD."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
