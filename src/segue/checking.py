"""`segue.check`: would the provider take this body, and by which rule not?"""

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
    """The verdict on a finished request body: true if it would be accepted, iterable over the violations.

    `profile` names a server that speaks `openai-chat` with rules of its own, such as `vllm` or `groq`.
    A body that is not this API's at all is an `InputError`.
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
