"""`segue.check`: predict whether the provider accepts a body, and which rules it breaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.jsontext import read_object, refuse_twice
from segue.conformance import apis, judge
from segue.conformance.rule import Verdict
from segue.errors import InputError, text_argument
from segue.wire.detect import speaks_against
from segue.wire.registry import WIRES

__all__ = ["check"]


def check(
    body: bytes | str | Mapping[str, Any], api: str, *, model: str | None = None, profile: str | None = None
) -> Verdict:
    """Check a finished request body. The verdict is true if it would be accepted, and iterates over the violations.

    `profile` names a server with its own rules for `openai-chat`, such as `vllm` or `groq`.
    A body of another API raises `InputError`.
    """
    text_argument(api, "api")
    text_argument(model, "model", needed=False)
    if api not in apis():
        raise InputError(f"{api!r} is not a known API; known are {', '.join(apis())}", path="api")
    value, _ = read_object(body)
    if api in WIRES:
        refuse_twice(body, WIRES[api].root)
    other = speaks_against(value, api)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {api}")
    return judge(value, api, model=model, profile=profile)
