"""JSON decoding and encoding, and the `InputError`s for input that is not valid JSON.

The values that `parse_json` returns are plain, finite and at most 500 levels deep, so later code need not check this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import is_
from typing import Any, TypeAlias, cast

import msgspec

from segue.errors import InputError

MAX_DEPTH = 500
# Python writes no longer integers as text.
_INTEGER_LIMIT = 10**4300
_MAX_PATH_SHOWN = 80
_MAX_COUNTED = 32_768
_CONTAINER_TYPES: frozenset[type] = frozenset({dict, list})
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"

_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder()
_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

_ESCAPED_UNIT = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNPAIRED_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE_BEFORE_COLON = re.compile(r'"\s+:')
_QUOTED = re.compile(rb'"[^"]*"')
_NON_STRUCTURAL = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|(?P<number>-?\d[\d.eE+-]*)|[\[\]{}]', re.DOTALL)
_DEPTH_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


encode_json: Callable[[object], bytes] = _encoder.encode


def encode_json_text(value: object) -> str:
    return _encoder.encode(value).decode()


def encode_json_sorted(value: object) -> bytes:
    """Encode with sorted keys, so that equal values give equal bytes."""
    return _sorting_encoder.encode(value)


def parse_json(data: object) -> tuple[Any, int]:
    """Return the plain value of a body, and the number of lone surrogates replaced by U+FFFD."""
    replaced = 0
    if isinstance(data, str):
        text, replaced = _UNPAIRED_SURROGATE.subn(_REPLACEMENT, data)
        buffer = text.encode()
    elif isinstance(data, bytes | bytearray):
        buffer = bytes(data)
    else:
        # A dict, an SDK object, or an unsupported type.
        return _to_plain(data, None, (), surrogate_count := [0]), surrogate_count[0]
    if not buffer.strip():
        raise InputError("the input is empty; a JSON object was expected")
    value, count = _decode(buffer)
    if len(buffer) > 2 * MAX_DEPTH and not _is_surely_flat(buffer) and _measure_depth(value) > MAX_DEPTH:
        raise _too_deep_error(buffer)
    return value, count + replaced


def _decode(buffer: bytes) -> tuple[Any, int]:
    try:
        return _decoder.decode(buffer), 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if estimate_depth(buffer) > MAX_DEPTH:
            raise _too_deep_error(buffer) from None
        if isinstance(error, UnicodeDecodeError):
            raise InputError(f"not UTF-8: {error.reason} at byte {_first_bad_byte(buffer)}") from None
        repaired, count = _replace_lone_surrogates(buffer)
        if not count:
            raise InputError(_describe_error(buffer, error)) from None
    try:
        return _decoder.decode(repaired), count
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(_describe_error(repaired, error)) from None


def _is_surely_flat(buffer: bytes) -> bool:
    """Return whether a short text has too few brackets for a deep value. A long text takes longer to search."""
    return len(buffer) <= _MAX_COUNTED and buffer.count(b"{") + buffer.count(b"[") <= MAX_DEPTH


def _measure_depth(value: object) -> int:
    """Return the nesting depth of a value."""
    levels = 0
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    while level:
        levels += 1
        values: list[Iterable[Any]] = [item.values() if type(item) is dict else item for item in level]
        level = [child for children in values for child in children if type(child) in _CONTAINER_TYPES]
    return levels


def parse_json_object(data: object) -> tuple[dict[str, Any], int]:
    """Parse a body, which must be an object."""
    value, surrogates = parse_json(data)
    if not isinstance(value, dict):
        kinds: dict[str, str] = {"list": "a list", "str": "a string", "NoneType": "null", "bool": "a boolean"}
        raise InputError(f"a JSON object was expected, this is {kinds.get(type(value).__name__, 'a number')}")
    return cast("dict[str, Any]", value), surrogates


def decode_members(data: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object, each value undecoded."""
    return _members_decoder.decode(data)


def _first_bad_byte(buffer: bytes) -> int:
    try:
        buffer.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _describe_error(buffer: bytes, error: Exception) -> str:
    """Return one line on why these bytes are not JSON, with line and column if available."""
    if buffer.startswith(b"\xef\xbb\xbf"):
        return "not JSON: it begins with a byte order mark"
    if b"\0" in buffer[:4096]:
        return "not JSON: it looks like a binary file"
    reason = str(error).removeprefix("JSON is malformed: ")
    if "truncated" in reason:
        return f"not JSON: it ends too early, {_format_position(buffer, len(buffer))}"
    if "out of range" in reason and (at := _first_huge_number(buffer)) is not None:
        return f"not JSON: a number out of range {_format_position(buffer, at)}"
    byte_position = re.search(r"\(byte (\d+)\)", reason)
    if byte_position is None:
        return f"not JSON: {reason[:1].lower()}{reason[1:]}"
    return (
        f"not JSON: {reason[: byte_position.start()].strip()} {_format_position(buffer, int(byte_position.group(1)))}"
    )


def _format_position(buffer: bytes, at: int) -> str:
    line = buffer.count(b"\n", 0, at) + 1
    column = at - (buffer.rfind(b"\n", 0, at) + 1) + 1
    return f"at line {line}, column {column}"


def _first_huge_number(buffer: bytes) -> int | None:
    numbers = (token for token in _TOKEN.finditer(buffer) if token["number"])
    return next((token.start() for token in numbers if not _is_finite(token["number"])), None)


def _is_finite(number: bytes) -> bool:
    try:
        return math.isfinite(float(number))
    except ValueError:
        return True


def _too_deep_error(buffer: bytes) -> InputError:
    depth = 0
    for token in _TOKEN.finditer(buffer):
        depth += _DEPTH_STEP.get(token[0][0], 0)
        if depth > MAX_DEPTH:
            return InputError(f"{_TOO_DEEP} {_format_position(buffer, token.start())}")
    return InputError(_TOO_DEEP)


def _replace_lone_surrogates(buffer: bytes) -> tuple[bytes, int]:
    """Replace escaped lone surrogates by U+FFFD; whole pairs are kept."""
    pieces: list[bytes] = []
    count = position = 0
    high: re.Match[bytes] | None = None
    for match in _ESCAPED_UNIT.finditer(buffer):
        unit = int(match.group(1), 16) if match.group(1) else 0
        if high is not None:
            if 0xDC00 <= unit <= 0xDFFF and match.start() == high.end():
                high = None
                continue
            pieces += [buffer[position : high.start()], b"\\ufffd"]
            position, count, high = high.end(), count + 1, None
        if 0xD800 <= unit <= 0xDBFF:
            high = match
        elif 0xDC00 <= unit <= 0xDFFF:
            pieces += [buffer[position : match.start()], b"\\ufffd"]
            position, count = match.end(), count + 1
    if high is not None:
        pieces += [buffer[position : high.start()], b"\\ufffd"]
        position, count = high.end(), count + 1
    return b"".join([*pieces, buffer[position:]]), count


def estimate_depth(buffer: bytes) -> int:
    """Return the nesting depth of the JSON in these bytes; a cheap upper bound where that is within the limit."""
    opened = buffer.count(b"{") + buffer.count(b"[")
    if opened <= MAX_DEPTH:
        return opened
    unescaped = buffer.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = _QUOTED.sub(b"", unescaped.translate(None, _NON_STRUCTURAL))
    return max(accumulate(map(_DEPTH_STEP.__getitem__, structure.replace(b'"', b""))), default=0)


def parse_argument_text(text: str) -> tuple[Any, str | None]:
    """Return the parsed arguments of a call, and the exact text where that is empty or not valid JSON.

    An empty text means no arguments. Text that is not JSON or nested too deep has the value None.
    """
    if not text.strip():
        return {}, text
    buffer = text.encode("utf-8", "replace")
    if len(buffer) > MAX_DEPTH and estimate_depth(buffer) > MAX_DEPTH:
        return None, text
    try:
        return _decoder.decode(buffer), None
    except (msgspec.DecodeError, RecursionError):
        repaired, count = _replace_lone_surrogates(buffer)
    if count:
        try:
            return _decoder.decode(repaired), None
        except msgspec.DecodeError:
            pass
    return None, text


def has_key_count(text: str, count: int) -> bool:
    """Return whether this JSON has exactly `count` keys; a cheap test that may give a false negative."""
    return text.count(":") == count or (text.count('":') == count and _SPACE_BEFORE_COLON.search(text) is None)


def find_duplicate_key(text: str, value: object) -> str | None:
    """Return a key that occurs twice in an object of this JSON, or None; `value` is its parsed value."""
    if isinstance(value, dict) and has_key_count(text, len(cast("dict[str, Any]", value))):
        return None
    duplicates: list[str] = []

    def check_pairs(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            duplicates.append(next(key for at, key in enumerate(keys) if key in keys[:at]))

    try:
        _decode_pairs(text, check_pairs)
    except (ValueError, RecursionError):
        return None
    return duplicates[0] if duplicates else None


def reject_duplicate_key(data: object, key: str) -> None:
    """Raise `InputError` if this top-level key occurs twice in a body. Checked for text and bytes only."""
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    name = f'"{key}"'.encode()
    if not isinstance(data, bytes | bytearray) or data.find(name) == data.rfind(name) or _has_unique_keys(data):
        return
    try:
        pairs: list[tuple[str, Any]] = _decode_pairs(data, list)
    except (ValueError, RecursionError):
        # Not valid JSON, which is the error to raise when the body is parsed.
        return
    if [name for name, _ in pairs].count(key) > 1:
        raise InputError(f"duplicate key `{key}`", path=key)


def _decode_pairs(data: str | bytes | bytearray, hook: Callable[[list[tuple[str, Any]]], object]) -> Any:
    """Decode JSON; `hook` returns the value of an object from its keys and values, which may have duplicates."""
    # Imported here, because few bodies need it.
    from json import loads

    return loads(data, object_pairs_hook=hook)


def _has_unique_keys(data: bytes | bytearray) -> bool:
    """Return whether no top-level key of an object occurs twice; a cheap test that may give a false negative.

    A dict has only one value of each key. Without white space, its size is that of the text only if none is missing.
    """
    try:
        members = _members_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return len(data) == 1 + sum([len(key) + 4 + memoryview(value).nbytes for key, value in members.items()])


def are_identical(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether two sequences hold the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 can't hold, replaced by U+FFFD."""
    return text if text.isascii() else _UNPAIRED_SURROGATE.sub(_REPLACEMENT, text)


def to_plain_json(value: object) -> Any:
    """Convert a Python value to plain JSON values. SDK objects are dumped; cycles, NaN and deep nesting raise."""
    return _to_plain(value, None, (), [0])


# The keys and indexes that lead to a value, innermost first; None for the root.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


def _format_path(path: _Path) -> str:
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        text = f"{text}[{step}]" if isinstance(step, int) else f"{text}.{step}" if text else step
    return text


def _to_plain(value: object, path: _Path, parents: tuple[int, ...], surrogate_count: list[int]) -> Any:
    if value is None or value is True or value is False or (type(value) is str and value.isascii()):
        return value
    if isinstance(value, str | int | float):
        return _to_plain_scalar(value, path, surrogate_count)
    if id(value) in parents:
        raise InputError("a value that contains itself can't be written as JSON", path=_format_path(path))
    if len(parents) >= MAX_DEPTH:
        raise InputError(_TOO_DEEP, path=f"{_format_path(path)[:_MAX_PATH_SHOWN]}…")
    parents = (*parents, id(value))
    # Loops, since a comprehension would take a second frame of the stack at each level.
    if isinstance(value, dict | Mapping):
        members: dict[str, Any] = {}
        for key, item in cast("Mapping[object, object]", value).items():
            step = key if isinstance(key, str) else str(key)
            plain = _to_plain(item, (path, step), parents, surrogate_count)
            members[_to_plain_key(key, path, surrogate_count)] = plain
        return members
    if isinstance(value, list | Sequence) and not isinstance(value, bytes | bytearray):
        items: list[Any] = []
        for index, item in enumerate(cast("Sequence[object]", value)):
            items.append(_to_plain(item, (path, index), parents, surrogate_count))
        return items
    return _to_plain(_dump_object(value, _format_path(path)), path, parents, surrogate_count)


def _to_plain_scalar(value: str | float, path: _Path, surrogate_count: list[int]) -> str | float:
    if isinstance(value, str):
        text, count = _UNPAIRED_SURROGATE.subn(_REPLACEMENT, value)
        surrogate_count[0] += count
        return text
    if isinstance(value, int):
        if not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
            raise InputError("an integer of more than 4,300 digits can't be written as JSON", path=_format_path(path))
    elif not math.isfinite(value):
        raise InputError(f"{value} is not a JSON number", path=_format_path(path))
    return value


def _to_plain_key(key: object, path: _Path, surrogate_count: list[int]) -> str:
    if not isinstance(key, str):
        raise InputError(f"an object's key must be a string, not {type(key).__name__}", path=_format_path(path))
    if key.isascii():
        return key
    text, count = _UNPAIRED_SURROGATE.subn(_REPLACEMENT, key)
    surrogate_count[0] += count
    return text


def _dump_object(value: object, path: str) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # The SDKs of OpenAI and Anthropic list fields here that are not part of the API.
        hidden = getattr(value, "__api_exclude__", None)
        as_sent = partial(dump, mode="json", by_alias=True, warnings=False, exclude=hidden)
        try:
            return _add_defaults(as_sent(exclude_unset=True), as_sent(exclude_none=True))
        except RecursionError:
            raise InputError(_TOO_DEEP, path=path) from None
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        raise InputError(f"a value of type {type(value).__name__!r} can't be written as JSON", path=path) from None


def _add_defaults(set_values: Any, all_values: Any) -> Any:
    """Return the fields that were set, plus defaults of the class that are not None (such as a role or a type)."""
    match set_values, all_values:
        case dict(), dict():
            fields, all_fields = cast("dict[str, Any]", set_values), cast("dict[str, Any]", all_values)
            return fields | {
                key: item if fields.get(key) is None else _add_defaults(fields[key], item)
                for key, item in all_fields.items()
            }
        case list(), list() if len(cast("list[Any]", set_values)) == len(cast("list[Any]", all_values)):
            return list(map(_add_defaults, cast("list[Any]", set_values), cast("list[Any]", all_values)))
        case _:
            return set_values
