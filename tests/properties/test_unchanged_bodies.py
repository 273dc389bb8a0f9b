"""A body that needs no change goes to its own API as the caller's bytes; only such a body does.

The bodies are those of recorded clients and of the table of conversations, with the changes of `make compare`: they
break ids, names, the order of messages, texts and fields. Each is spelled in a way that segue never writes.
"""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.conversion import sessions
from segue.errors import SegueError
from segue.wire.detect_body import detect_source
from segue.wire.registry import WIRES
from tests.budget import examples
from tests.compare import change, conversation_key, load_runs, load_table
from tests.properties.test_slices import STYLES

Body = dict[str, Any]


@cache
def given_sessions(api: str) -> list[list[Body]]:
    found = [(source or detect_source(bodies[-1]), bodies) for _, source, bodies in (*load_runs(), *load_table())]
    return [bodies for source, bodies in found if source == api and conversation_key(bodies[-1]) is not None]


@pytest.mark.parametrize("api", WIRES)
@examples(12, items=len(WIRES))
@given(seed=st.integers(0, 2**32), style=st.sampled_from(sorted(STYLES)))
def test_only_unchanged_bodies_are_sent_as_they_are(api: str, seed: int, style: str) -> None:
    random = Random(seed)
    sessions.clear()
    for body in change(random, random.choice(given_sessions(api))):
        data = STYLES[style](body).encode()
        note(data.decode())
        given_body = json.loads(data)
        try:
            expected = segue.convert(given_body, source=api, target=api).body
        except SegueError:
            continue
        converted = segue.convert(data, source=api, target=api)
        assert json.dumps(json.loads(converted.data)) == json.dumps(expected)
        if json.dumps(expected) == json.dumps(given_body):
            assert converted.data == data
            assert segue.check(expected, api), str(segue.check(expected, api))
