"""Gemini generateContent."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def user(*parts: Any, **more: Any) -> Body:
    return {"role": "user", "parts": list(parts), **more}


def model(*parts: Any, **more: Any) -> Body:
    return {"role": "model", "parts": list(parts), **more}


def call(*, signature: Any = None, **fields: Any) -> Body:
    """A functionCall part, unsigned by default."""
    part: Body = {"functionCall": {"name": "f", "args": {}, **fields}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def response(**fields: Any) -> Body:
    """A functionResponse part."""
    return {"functionResponse": {"name": "f", "response": {}, **fields}}
