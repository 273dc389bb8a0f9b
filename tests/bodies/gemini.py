"""Gemini generateContent."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def _parts(content: tuple[Any, ...]) -> list[Any]:
    return [{"text": one} if isinstance(one, str) else one for one in content]


def user(*parts: Any, **more: Any) -> Body:
    """A user content; strings are text parts."""
    return {"role": "user", "parts": _parts(parts), **more}


def model(*parts: Any, **more: Any) -> Body:
    """A model content; strings are text parts."""
    return {"role": "model", "parts": _parts(parts), **more}


def call(*, signature: Any = None, **fields: Any) -> Body:
    """A functionCall part, unsigned by default."""
    part: Body = {"functionCall": {"name": "f", "args": {}, **fields}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def response(**fields: Any) -> Body:
    """A functionResponse part."""
    return {"functionResponse": {"name": "f", "response": {}, **fields}}
