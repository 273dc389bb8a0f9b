"""The prompt cache of a provider: how much of a prompt, from its beginning, an earlier request has left in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple
from zlib import crc32

import msgspec

from segue.canonical.request import Usage
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, text_or_none, without_keys

_MAX_PREFIXES = 100_000
_PROMPT_FIELDS = ("tools", "toolConfig", "system", "systemInstruction", "system_instruction", "instructions")
# Members of a message that are not counted.
_UNREAD = frozenset({"role", "type", "id", "status"})
_MARKERS = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})
LIFETIMES = {"5m": 300.0, "30m": 1800.0, "1h": 3600.0, "12h": 43_200.0, "24h": 86_400.0}


def estimate_tokens(text: str | bytes | int, model: str) -> int:
    """Estimate the number of tokens of a text or length: 3.0 to 4.5 characters each, as models have tokenizers."""
    length = text if isinstance(text, int) else len(text)
    return -(-length * 10 // (30 + crc32(model.encode()) % 16))


class CacheRules(NamedTuple):
    """What a provider caches and bills.

    `marked`: the prefixes that are cached without a marker, up to each part of a prompt, up to its last, or none.
    `look_back`: how many parts before a marker a cached prefix is searched; None for all. `settings`: paths of body
    fields whose change invalidates the cache.
    """

    minimum: int = 1024
    step: int = 1
    lifetime: float = LIFETIMES["5m"]
    marked: Literal["each", "last", "none"] = "each"
    look_back: int | None = None
    reports_writes: bool = False
    settings: tuple[str, ...] = ()


class PromptPart(NamedTuple):
    """A block of a prompt. `entry` is its conversation entry, -1 before all; `marker` is its cache marker."""

    content: Any
    entry: int
    marker: JsonObject | None = None


class PromptBill(NamedTuple):
    """`written`: the tokens written to the cache by their lifetime in seconds. `kept`: entries of an earlier prompt."""

    usage: Usage
    written: Mapping[float, int]
    kept: int


def split_prompt(body: Mapping[str, Any], entries: Sequence[Any]) -> list[PromptPart]:
    """Return the blocks of a prompt in the order in which they are cached: tools, system prompt, conversation."""
    parts: list[PromptPart] = []

    def add_blocks(labels: Sequence[Any], blocks: Sequence[Any], entry: int) -> None:
        for place, block in enumerate(blocks):
            members = object_or_none(block) or {}
            marker = next((object_or_none(members[key]) or {} for key in _MARKERS if key in members), None)
            if "cachePoint" in members:
                # A block of its own, which marks the one before.
                parts[-1:] = [part._replace(marker=marker) for part in parts[-1:]]
            else:
                label = labels[min(place, len(labels) - 1)]
                parts.append(PromptPart([label, without_keys(block, _MARKERS)], entry, marker))

    for field in _PROMPT_FIELDS:
        if field in body:
            value = body[field]
            add_blocks([field], _blocks((object_or_none(value) or {}).get("tools", value)), -1)
    for number, entry in enumerate(entries):
        fields = object_or_none(entry)
        key = "parts" if "parts" in (fields or {}) else "content"
        blocks = _blocks((fields or {}).get(key))
        if fields is None or not blocks:
            add_blocks([None], [entry], number)
        else:
            rest = {name: value for name, value in fields.items() if name != key}
            add_blocks([rest, {"role": fields.get("role")}], blocks, number)
    return parts


def count_prompt(parts: Sequence[PromptPart], model: str) -> int:
    """Return the number of tokens of a prompt."""
    return max(1, estimate_tokens(sum(map(_count_characters, parts)), model))


def marker_lifetime(marker: object, default: float) -> float:
    """Return the lifetime in seconds that a marker or an option asks for."""
    return LIFETIMES.get(text_or_none((object_or_none(marker) or {}).get("ttl")) or "", default)


class PromptCache:
    """The prefixes of all prompts, with the time at which they expire; the oldest are evicted."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The end and the length of the life of a prefix: 0 if it was sent, but not cached.
        self._prefixes: dict[bytes, tuple[float, float]] = {}

    def bill(
        self, account: str, model: str, body: Mapping[str, Any], parts: Sequence[PromptPart], rules: CacheRules
    ) -> PromptBill:
        """Return what a prompt reads and writes, and write it."""
        now = self._clock()
        settings = [_find(body, path) for path in rules.settings]
        prefix_hash, size = sha256(_encode([account, model, settings])).digest(), 0
        hashes, totals = list[bytes](), list[int]()
        for part in parts:
            text = _encode(part.content)
            prefix_hash, size = sha256(prefix_hash + text).digest(), size + _count_characters(part)
            hashes.append(prefix_hash)
            totals.append(estimate_tokens(size, model))
        new = next((place for place, found in enumerate(hashes) if found not in self._prefixes), None)
        kept = (parts[-1].entry + 1 if parts else 0) if new is None else max(0, parts[new].entry)
        marks = [
            place
            for place, part in enumerate(parts)
            if totals[place] >= rules.minimum
            and (
                part.marker is not None
                or rules.marked == "each"
                or (rules.marked == "last" and place == len(parts) - 1)
            )
        ]
        searched = marks[-1:] if rules.look_back is None else marks
        hit = max(
            (place for mark in searched for place in self._alive(hashes, mark, rules.look_back, now)), default=None
        )
        read = 0 if hit is None else totals[hit] // rules.step * rules.step
        written: dict[float, int] = {}
        lifetimes = {mark: marker_lifetime(parts[mark].marker, rules.lifetime) for mark in marks}
        before = read
        for mark in marks if rules.reports_writes else ():
            if totals[mark] > before:
                written[lifetimes[mark]] = written.get(lifetimes[mark], 0) + totals[mark] - before
                before = totals[mark]
        self._write(hashes, lifetimes, hit, now)
        usage = Usage(max([1, *totals[-1:]]), cache_read=read, cache_write=sum(written.values()))
        return PromptBill(usage, written, kept)

    def _alive(self, hashes: Sequence[bytes], mark: int, look_back: int | None, now: float) -> list[int]:
        """Return the last cached prefix up to a marker, if one has not expired."""
        first = 0 if look_back is None else max(0, mark - look_back)
        places = range(mark, first - 1, -1)
        return [place for place in places if self._prefixes.get(hashes[place], (0.0, 0.0))[0] > now][:1]

    def _write(self, hashes: Sequence[bytes], lifetimes: Mapping[int, float], hit: int | None, now: float) -> None:
        """Store the prefixes; a use of one begins its life anew."""
        for place, prefix_hash in enumerate(hashes):
            end, lifetime = self._prefixes.pop(prefix_hash, (0.0, 0.0))
            lifetime = lifetime if end > now else lifetimes.get(place, 0.0)
            is_used = place in lifetimes or place == hit
            self._prefixes[prefix_hash] = (now + lifetime, lifetime) if is_used else (end, lifetime)
        while len(self._prefixes) > _MAX_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]


def _find(body: Mapping[str, Any], path: str) -> Any:
    value: Any = body
    for name in path.split("."):
        value = (object_or_none(value) or {}).get(name)
    return value


def _count_characters(part: PromptPart) -> int:
    """Return the number of characters that a model reads: the text of a text block, the JSON of others."""
    label, block = part.content
    text = (object_or_none(block) or {}).get("text")
    fields = [value for key, value in (object_or_none(label) or {}).items() if key not in _UNREAD]
    return (len(text) if isinstance(text, str) else len(_encode(block))) + sum(len(_encode(each)) for each in fields)


def _blocks(content: Any) -> list[Any]:
    """Return content as blocks: a text is one of them."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [content] if isinstance(content, dict) else list_or_empty(content)


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
