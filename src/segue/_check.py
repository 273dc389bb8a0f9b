"""`segue.check`: predict whether the provider accepts a body, and which rules it breaks."""

from __future__ import annotations

from segue._literals import Api, Profile
from segue.canonical.json import parse_json_object, reject_duplicate_key
from segue.coerce import Body, wrap_messages
from segue.conformance import check_body
from segue.conformance.rule import Verdict
from segue.errors import InputError, require_string
from segue.wire.detect_body import find_contradicting_api
from segue.wire.registry import find_wire

__all__ = ["check"]


def check(body: Body, api: Api, *, model: str | None = None, profile: Profile | None = None) -> Verdict:
    """Check a finished request body. The verdict is true if it would be accepted, and iterates over the violations.

    `profile` names a server with its own rules for `openai-chat`, such as `vllm` or `groq`.
    A body of another API raises `InputError`.
    """
    require_string(model, "model", required=False)
    wire = find_wire(api, argument="api")
    body = wrap_messages(body, api)
    value, _ = parse_json_object(body)
    reject_duplicate_key(body, wire.conversation_key)
    other = find_contradicting_api(value, api)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {api}")
    return check_body(value, api, model=model, profile=profile)
