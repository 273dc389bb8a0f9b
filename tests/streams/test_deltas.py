"""Texts that grow by deltas equal the joined text, in every question about them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segue.wire.stream.deltas import ArgumentsBuffer, TextBuffer, is_complete_object
from tests.budget import examples

PIECES = st.lists(
    st.text(alphabet='{}[]":\\\\a1, ', max_size=5) | st.sampled_from(['{"a":', '"}', "}", '{"a":1}']), max_size=12
)


@examples(25)
@given(pieces=PIECES, start=st.integers(0, 20), other=st.text(alphabet='{"a', max_size=4))
def test_buffer_equals_the_joined_text(pieces: list[str], start: int, other: str) -> None:
    buffer = TextBuffer()
    for piece in pieces:
        buffer.append(piece)
    text = "".join(pieces)
    for prefix in (text[:start], text[:start] + other, other):
        assert buffer.starts_with(prefix) == text.startswith(prefix)
    assert buffer.text_from(start) == text[start:]
    assert len(buffer) == len(text)
    for longer in (text, text + other, other):
        assert buffer.is_prefix_of(longer) == longer.startswith(text)
    assert buffer.text() == text


@examples(50)
@given(pieces=PIECES, places=st.sets(st.integers(0, 11)))
def test_completeness_is_that_of_the_joined_text(pieces: list[str], places: set[int]) -> None:
    """Whenever it is asked for."""
    buffer = ArgumentsBuffer()
    for number, piece in enumerate(pieces):
        buffer.append(piece)
        if number in places:
            assert buffer.is_complete_object() == is_complete_object("".join(pieces[: number + 1]))
    assert buffer.is_complete_object() == is_complete_object("".join(pieces))
