"""Conversions with and without memory, compared: `segue.convert` of bytes with that of a whole body."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import segue
from segue import _convert
from segue.conversion import sessions
from segue.errors import SegueError


@contextmanager
def without_memory() -> Generator[None]:
    """Convert bodies whole: with empty memory, and not in slices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_convert, "convert_bytes", lambda *_: None)
        patch.setattr(sessions.conversations, "add", lambda *_: False)
        yield


def convert_whole(data: bytes, **job: Any) -> segue.Converted:
    with without_memory():
        return segue.convert(data, **job)


def compare(data: bytes, **job: Any) -> bool:
    """Whether the body was not converted whole; in any case the result is the same, or the same error."""
    try:
        expected = convert_whole(data, **job)
    except SegueError as error:
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
            segue.convert(data, **job)
        return False
    with pytest.MonkeyPatch.context() as patch:
        found: list[object] = []
        real = _convert.convert_bytes
        patch.setattr(_convert, "convert_bytes", lambda *given: found.append(real(*given)) or found[-1])
        converted = segue.convert(data, **job)
    check_equal(converted, expected)
    return found != [None]


def check_equal(converted: segue.Converted, expected: segue.Converted) -> None:
    assert converted.data == expected.data
    assert converted.source == expected.source
    assert converted.report.to_dict() == expected.report.to_dict()
    assert converted.report.findings == expected.report.findings
    sent, other = converted._sent_request, expected._sent_request
    assert sent.reply_key == other.reply_key
    assert sorted(sent.names.changed) == sorted(other.names.changed)
    assert sent.history is not None
    assert other.history is not None
    assert sent.history.ids == other.history.ids
    assert sent.history.raw_ids == other.history.raw_ids
