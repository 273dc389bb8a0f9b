"""A run of deltas of one block, each in a read of its own: the usual traffic of a slow model.

In a run only the text of each read is decoded. The reader of the stream gets the text of all of them when the run is
closed; what it returns and its limits are the same as without runs.
"""

from __future__ import annotations

from io import StringIO

from segue.wire.stream.delta_template import DeltaTemplate, ParseText

# A longer run would hold much of the reply twice.
_MAX_SIZE = 1 << 17


class DeltaRun:
    """`parse_text` parses reads that match the template.

    `limit` is the number of bytes that the run may have. `size` is the number that it has.
    """

    __slots__ = ("_limit", "_parse_text", "_text", "last_read", "size", "template")

    def __init__(self, template: DeltaTemplate, parse_text: ParseText, limit: int) -> None:
        self.template = template
        self._parse_text = parse_text
        self._limit = min(limit, _MAX_SIZE)
        self._text = StringIO()
        self.size = 0
        self.last_read = b""

    def parse(self, read: bytes) -> str | None:
        """Return the text of a read with one delta; None if it has anything else or is not within the limit."""
        size = self.size + len(read)
        text = self._parse_text(read)
        if not text or size > self._limit:
            return None
        self.size = size
        self.last_read = read
        self._text.write(text)
        return text

    def text(self) -> str:
        return self._text.getvalue()
