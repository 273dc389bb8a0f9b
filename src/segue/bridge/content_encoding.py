"""The content encoding of HTTP responses: every request asks for none, and a response with one is refused.

A compressed response can be a thousand times as large as what was received, so its size would not be limited by what is
read. Streams arrive unbuffered only without compression.
"""

from __future__ import annotations

ACCEPT_ENCODING = {"accept-encoding": "identity"}
"""The request header of all HTTP clients."""
_MAX_NAME = 40


def find_encoding_error(content_encoding: str | None) -> str | None:
    """Return the error text for the value of a `Content-Encoding` header, or None if the response is not encoded."""
    encodings = [name for part in (content_encoding or "").split(",") if (name := part.strip().lower())]
    if all(name == "identity" for name in encodings):
        return None
    name = "".join(char for char in ", ".join(encodings) if char.isprintable())[:_MAX_NAME]
    return f"the response has the content encoding {name}, which was not requested"
