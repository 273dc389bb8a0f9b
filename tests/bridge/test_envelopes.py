"""Envelopes: what was sealed is opened unchanged, and nothing else is; keys, bindings, age and size."""

from __future__ import annotations

import base64
import hmac
import json
import re
import zlib
from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from segue.bridge import envelopes
from segue.bridge.envelopes import (
    MAX_ENVELOPE_SIZE,
    MAX_PAYLOAD_SIZE,
    EndpointBinding,
    EnvelopeKeys,
    OpenedEnvelope,
    PlacedBlock,
    RejectedEnvelope,
    entry_key,
    fingerprint_key,
    open_envelope,
    seal,
)
from segue.bridge.secret import Secret
from segue.canonical.blocks import Native, Origin, Thinking
from segue.canonical.envelope import ENVELOPE_PREFIX, is_envelope
from segue.errors import InputError
from tests.budget import examples

NOW = 1_800_000_000
DAY = 86_400
API_KEY = "sk-test-0123456789abcdef"
KEYS = EnvelopeKeys(b"a" * 32)
BINDING = EndpointBinding("anthropic", "https://api.example/v1", fingerprint_key(Secret(API_KEY)), "claude-sonnet-5")
BLOCKS = (
    (0, Thinking("hm", "c2ln", origin=Origin("anthropic", "claude-sonnet-5", identity="absent"), prefix="ab" * 8)),
    (2, Thinking(encrypted="c2VjcmV0", native=Native("anthropic", {"type": "redacted_thinking", "x": [1.5, None]}))),
)
BASE64 = re.compile(r"[A-Za-z0-9+/]*")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
optional_texts = st.none() | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
fragments = st.dictionaries(texts, values, max_size=4)
fields = {field.encode_name for field in msgspec.structs.fields(Thinking)} | {"type"}
origins = st.builds(
    Origin,
    provider=texts,
    model=optional_texts,
    raw_id=optional_texts,
    item_id=optional_texts,
    identity=st.sampled_from(["natural", "absent", "synthetic"]),
    parent=optional_texts,
)
thoughts = st.builds(
    Thinking,
    text=texts,
    signature=optional_texts,
    encrypted=optional_texts,
    origin=origins,
    prefix=optional_texts,
    native=st.none() | st.builds(Native, api=texts, fragment=fragments, intact=st.booleans()),
    # A field that this version knows is never in `extra`.
    extra=st.none() | st.dictionaries(texts.filter(lambda key: key not in fields), values, min_size=1, max_size=3),
)
blocks_lists = st.lists(st.tuples(st.integers(0, 1000), thoughts), max_size=4)
bindings = st.builds(EndpointBinding, provider=texts, endpoint=texts, key_fingerprint=texts, model=texts)
key_bytes = st.binary(min_size=32, max_size=64)


def sealed(
    blocks: Any = BLOCKS, binding: EndpointBinding = BINDING, keys: EnvelopeKeys = KEYS, now: float = NOW
) -> str:
    text = seal(blocks, binding, keys, now)
    assert text is not None
    return text


def opened(
    text: str, binding: EndpointBinding = BINDING, keys: EnvelopeKeys = KEYS, now: float = NOW, max_age: float = DAY
) -> OpenedEnvelope | RejectedEnvelope:
    return open_envelope(text, binding, keys, now, max_age)


def reason(result: OpenedEnvelope | RejectedEnvelope) -> str:
    assert isinstance(result, RejectedEnvelope)
    assert result.message
    return result.reason


def signed_by_hand(payload: bytes, *, version: int = 1, time: int = NOW) -> str:
    """An envelope with a valid MAC and any content: what only the holder of the key can make."""
    body = time.to_bytes(8) + payload
    body += b"\0" * (-(48 + len(body)) % 3)
    head = base64.b64decode(ENVELOPE_PREFIX) + bytes([version])
    mac = hmac.digest(KEYS.current, head + body, "sha256")
    return base64.b64encode(head + mac + body).decode()


# -------------------------------------------------------------------------------------------------------------- sealing


@examples(20)
@given(blocks=blocks_lists, binding=bindings, key=key_bytes, now=st.integers(0, 2**40))
def test_what_is_sealed_is_opened_unchanged(
    blocks: list[PlacedBlock], binding: EndpointBinding, key: bytes, now: int
) -> None:
    keys = EnvelopeKeys(key)
    text = sealed(blocks, binding, keys, now)
    assert is_envelope(text)
    assert BASE64.fullmatch(text)
    assert len(text) % 4 == 0
    result = opened(text, binding, keys, now)
    assert result == OpenedEnvelope(tuple(blocks), binding.model, now)
    # Equal values of other types, such as 1 and 1.0, have other bytes.
    assert isinstance(result, OpenedEnvelope)
    assert msgspec.json.encode([block for _, block in result.blocks]) == msgspec.json.encode(
        [block for _, block in blocks]
    )


def test_clients_may_encode_it_in_the_other_alphabet() -> None:
    """The Python SDK of Gemini decodes signatures, and encodes them in the alphabet for URLs."""
    blocks = [(0, Thinking(f"{number}" * number)) for number in range(40)]
    text = sealed(blocks)
    part = types.Part.model_validate_json(json.dumps({"thoughtSignature": text}))
    other = json.loads(part.model_dump_json(by_alias=True))["thoughtSignature"]
    assert other == text.replace("+", "-").replace("/", "_") != text
    assert is_envelope(other)
    assert opened(other) == opened(text) == OpenedEnvelope(tuple(blocks), BINDING.model, NOW)


def test_a_fragment_may_be_as_deep_as_a_body() -> None:
    fragment: dict[str, Any] = {}
    for _ in range(498):
        fragment = {"a": fragment}
    blocks = ((0, Thinking("hm", native=Native("gemini", fragment))),)
    assert opened(sealed(blocks)) == OpenedEnvelope(blocks, BINDING.model, NOW)


def test_it_holds_neither_endpoint_nor_key() -> None:
    data = base64.b64decode(sealed())
    payload = zlib.decompressobj().decompress(data[56:])
    assert b"claude-sonnet-5" in payload
    for secret in (b"api.example", API_KEY.encode(), BINDING.key_fingerprint.encode(), KEYS.current):
        assert secret not in payload


def test_reasoning_that_is_too_long_is_not_sealed() -> None:
    """A long text of few different characters is compressed; random text is not."""
    assert isinstance(opened(sealed([(0, Thinking("hm " * MAX_ENVELOPE_SIZE))])), OpenedEnvelope)
    noise = hmac.digest(b"", b"", "sha512").hex()
    while len(noise) < 3 * MAX_ENVELOPE_SIZE:
        noise += "".join(hmac.digest(noise[-64:].encode(), noise[:64].encode(), "sha512").hex() for _ in range(2))
    blocks = ((0, Thinking(noise)),)
    assert seal(blocks, BINDING, KEYS, NOW) is None
    stored = seal(blocks, BINDING, KEYS, NOW, max_size=16 * MAX_ENVELOPE_SIZE)
    assert stored is not None
    assert len(stored) > MAX_ENVELOPE_SIZE
    assert opened(stored) == OpenedEnvelope(blocks, BINDING.model, NOW)


def test_the_limit_of_a_payload() -> None:
    """What is sealed can be opened, up to the last byte."""
    rest = len(zlib.decompressobj().decompress(base64.b64decode(sealed([(0, Thinking("x"))]))[56:])) - 1
    longest = "x" * (MAX_PAYLOAD_SIZE - rest)
    assert isinstance(opened(sealed([(0, Thinking(longest))])), OpenedEnvelope)
    assert seal([(0, Thinking(longest + "x"))], BINDING, KEYS, NOW, max_size=2**30) is None


# -------------------------------------------------------------------------------------------------------------- binding


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"provider": "bedrock"}, "provider"),
        ({"endpoint": "https://api.example/v2"}, "endpoint"),
        ({"key_fingerprint": fingerprint_key(Secret("sk-other"))}, "key"),
        ({"key_fingerprint": ""}, "key"),
    ],
)
def test_it_opens_only_for_its_binding(change: dict[str, str], expected: str) -> None:
    assert reason(opened(sealed(), msgspec.structs.replace(BINDING, **change))) == expected


def test_another_model_opens_it_and_gets_the_recorded_one() -> None:
    result = opened(sealed(), msgspec.structs.replace(BINDING, model="claude-opus-5"))
    assert result == OpenedEnvelope(BLOCKS, "claude-sonnet-5", NOW)


def test_age() -> None:
    text = sealed()
    assert isinstance(opened(text, now=NOW + DAY), OpenedEnvelope)
    assert reason(opened(text, now=NOW + DAY + 1)) == "expired"
    # The clock of another machine may be behind.
    assert isinstance(opened(text, now=NOW - 60), OpenedEnvelope)


def test_rotation() -> None:
    old, new = b"o" * 32, b"n" * 40
    text = sealed(keys=EnvelopeKeys(old))
    assert isinstance(opened(text, keys=EnvelopeKeys(new, old)), OpenedEnvelope)
    assert reason(opened(text, keys=EnvelopeKeys(new))) == "forged"
    after = sealed(keys=EnvelopeKeys(new, old))
    assert isinstance(opened(after, keys=EnvelopeKeys(new)), OpenedEnvelope)
    assert reason(opened(after, keys=EnvelopeKeys(old))) == "forged"


@pytest.mark.parametrize(("current", "previous", "path"), [(b"a" * 31, None, "current"), (b"a" * 32, b"", "previous")])
def test_short_keys(current: bytes, previous: bytes | None, path: str) -> None:
    with pytest.raises(InputError, match="at least 32") as raised:
        EnvelopeKeys(current, previous)
    assert raised.value.path == path


def test_keys_are_not_printed() -> None:
    keys = EnvelopeKeys(b"k" * 32, b"p" * 32)
    for shown in (repr(keys), str(keys), f"{keys}"):
        assert "kkk" not in shown
        assert "ppp" not in shown


def test_fingerprints() -> None:
    assert fingerprint_key(None) == ""
    assert fingerprint_key(Secret(API_KEY)) == fingerprint_key(Secret(API_KEY))
    assert fingerprint_key(Secret(API_KEY)) != fingerprint_key(Secret("sk-other"))
    assert API_KEY not in fingerprint_key(Secret(API_KEY))


# -------------------------------------------------------------------------------------------------------------- garbage


@examples(25)
@given(st.text() | st.binary().map(lambda data: ENVELOPE_PREFIX + base64.b64encode(data).decode()))
def test_any_text_is_rejected(text: str) -> None:
    assert reason(opened(text)) in ("forged", "version")
    assert reason(opened(ENVELOPE_PREFIX + text)) in ("forged", "version")


def test_every_flipped_bit_and_every_cut_is_rejected() -> None:
    text = sealed()
    data = base64.b64decode(text)
    for position in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        expected = "version" if position // 8 == 15 else "forged"
        assert reason(opened(base64.b64encode(flipped).decode())) == expected
    for end in range(len(text)):
        assert reason(opened(text[:end])) == "forged"
        assert reason(opened(f"{text[:end]}={text[end:]}")) == "forged"
        assert reason(opened(f"{text[:end]}\n{text[end:]}")) == "forged"
    for rest in ("=", "====", "AAAA", " ", "é", "\ud800", "\0"):
        assert reason(opened(text + rest)) == "forged"


def test_another_version() -> None:
    assert reason(opened(signed_by_hand(zlib.compress(b"{}"), version=2))) == "version"


def stored_payload(**changes: Any) -> bytes:
    data = zlib.decompressobj().decompress(base64.b64decode(sealed())[56:])
    return msgspec.json.encode({**msgspec.json.decode(data), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": None},
        {"blocks": 5},
        {"blocks": [5]},
        {"blocks": [[0]]},
        {"blocks": [[0, 5]]},
        {"blocks": [["0", {"type": "thinking"}]]},
        {"blocks": [[0, {"type": "text", "text": "a"}]]},
        {"blocks": [[0, {"type": "thinking", "text": 5}]]},
        {"blocks": [[0, {"type": "unknown"}]]},
    ],
)
def test_content_of_a_later_version(changes: dict[str, Any]) -> None:
    assert isinstance(opened(signed_by_hand(zlib.compress(stored_payload()))), OpenedEnvelope)
    assert reason(opened(signed_by_hand(zlib.compress(stored_payload(**changes))))) == "version"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"not compressed",
        zlib.compress(b""),
        zlib.compress(b"\xff"),
        zlib.compress(b"[1]"),
        zlib.compress(b'{"a":'),
        zlib.compress(b"[" * 200_000),
        zlib.compress(stored_payload())[:-5],
    ],
)
def test_damaged_content_under_a_valid_mac(payload: bytes) -> None:
    assert reason(opened(signed_by_hand(payload))) == "forged"


def test_decompression_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = signed_by_hand(zlib.compress(b" " * (4 * MAX_PAYLOAD_SIZE) + stored_payload()))
    sizes: list[int] = []
    decompressors = [zlib.decompressobj()]

    class Counting:
        def __init__(self) -> None:
            self._inner = decompressors.pop()

        @property
        def eof(self) -> bool:
            return self._inner.eof

        def decompress(self, data: bytes, limit: int) -> bytes:
            result = self._inner.decompress(data, limit)
            sizes.append(len(result))
            return result

    monkeypatch.setattr(envelopes.zlib, "decompressobj", Counting)
    assert reason(opened(bomb)) == "forged"
    assert sizes == [MAX_PAYLOAD_SIZE + 1]


def test_a_text_that_is_too_long_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr(envelopes.base64, "b64decode", fail)
    assert reason(opened(ENVELOPE_PREFIX + "A" * (2 * MAX_PAYLOAD_SIZE))) == "forged"


# -------------------------------------------------------------------------------------------------------- store entries


@examples(10)
@given(st.lists(st.tuples(st.text(), st.text(), st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_entry_keys_differ_where_a_part_differs(parts: list[tuple[str, str, str, str]]) -> None:
    first, second = (entry_key(KEYS, *part) for part in parts)
    assert first != second
    assert re.fullmatch("[0-9a-f]{64}", first)


def test_entry_keys() -> None:
    parts = ("client-key", "reasoning", "hist_tool_1", "digest")
    assert entry_key(KEYS, *parts) == entry_key(KEYS, *parts)
    assert entry_key(KEYS, *parts) != entry_key(EnvelopeKeys(b"b" * 32), *parts)
    # Parts are separate: moving a character from one to the next gives another key.
    assert entry_key(KEYS, "ab", "c", "d", "e") != entry_key(KEYS, "a", "bc", "d", "e")
