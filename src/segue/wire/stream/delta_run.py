"""A run of deltas of one block, each in a read of its own: the usual traffic of a slow model.

In a run only the text of each read is decoded, and its bytes are used again where they are also those that the caller
gets. The reader of the stream gets the text of all reads when the run is closed; what it returns and its limits are the
same as without runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from segue.canonical.json import encode_json
from segue.wire.stream.delta_template import DECODE_ERRORS, DeltaTemplate, TextFinder, decode_text, has_quotes
from segue.wire.stream.render import DeltaFormat

# Number of bytes after which the texts of a run are joined: many small strings take ten times the memory.
_JOIN_SIZE = 1 << 17


class RunContent(NamedTuple):
    """The number of bytes and the text of a run, and its last read."""

    size: int
    text: str
    last_read: bytes


class DeltaRun(NamedTuple):
    """`convert` converts a read with one delta; it returns None if the read has anything else or exceeds the limit."""

    template: DeltaTemplate
    convert: Callable[[bytes], bytes | None]
    content: Callable[[], RunContent]


def open_run(template: DeltaTemplate, finder: TextFinder, delta_format: DeltaFormat, limit: int) -> DeltaRun:
    """Return a run of at most `limit` bytes."""
    # Functions with variables of their own: attributes and further calls would take as long as the rest.
    find_text, head, tail = finder
    render_text, new_head, new_tail = delta_format
    fixed_size = len(head) + len(tail)
    size, last_read = 0, b""
    next_join = min(limit, _JOIN_SIZE)
    texts: list[str] = []
    append = texts.append

    def join_texts(length: int) -> bool:
        """Join the texts; return False if a run of this length is above the limit."""
        nonlocal next_join
        next_join = min(limit, length + _JOIN_SIZE)
        texts[:] = ["".join(texts)]
        return length <= limit

    def convert(read: bytes) -> bytes | None:
        nonlocal size, last_read
        try:
            encoded = read.removeprefix(head).removesuffix(tail) if find_text is None else find_text(read)
            if find_text is None and fixed_size + len(encoded) != len(read):
                return None
            text = decode_text(encoded)
        except DECODE_ERRORS:
            return None
        length = size + len(read)
        if not text or (length > next_join and not join_texts(length)):
            return None
        if len(encoded) != len(text) + 2:
            if not has_quotes(encoded):
                return None
            # It has escapes or other characters than ASCII, so it may be encoded in another way than segue's.
            encoded = encode_json(text)
        size, last_read = length, read
        append(text)
        return new_head + encoded + new_tail if render_text is None else render_text(text, encoded)

    return DeltaRun(template, convert, lambda: RunContent(size, "".join(texts), last_read))
