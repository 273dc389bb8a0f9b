"""`segue.check`: predict whether the provider accepts a body, and which rules it breaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.json import parse_json_object, reject_duplicate_key
from segue.conformance import apis, check_body
from segue.conformance.rule import Verdict
from segue.errors import InputError, require_string
from segue.wire.detect_body import find_contradicting_api
from segue.wire.registry import WIRES

__all__ = ["check"]


def check(
    body: bytes | str | Mapping[str, Any], api: str, *, model: str | None = None, profile: str | None = None
) -> Verdict:
    """Check a finished request body. The verdict is true if it would be accepted, and iterates over the violations.

    `profile` names a server with its own rules for `openai-chat`, such as `vllm` or `groq`.
    A body of another API raises `InputError`.
    """
    require_string(api, "api")
    require_string(model, "model", required=False)
    if api not in apis():
        raise InputError(f"{api!r} is not a known API; known are {', '.join(apis())}", path="api")
    value, _ = parse_json_object(body)
    if api in WIRES:
        reject_duplicate_key(body, WIRES[api].conversation_key)
    other = find_contradicting_api(value, api)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {api}")
    return check_body(value, api, model=model, profile=profile)
