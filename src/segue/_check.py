"""`segue.check`: predict whether the provider accepts a body, and which rules it breaks."""

from __future__ import annotations

from segue._literals import Api, Profile
from segue.canonical.json import parse_json_object, reject_duplicate_key
from segue.coerce import Body, choose_api, wrap_messages
from segue.conformance import apis, check_body, profile_names
from segue.conformance.rule import Verdict
from segue.errors import InputError, require_string
from segue.models import parse_model
from segue.wire.detect_body import find_contradicting_api
from segue.wire.registry import SERVERS, WIRES, find_wire_or_server

for _api in WIRES:
    if _api not in apis():
        _name = f"segue/conformance/{_api.replace('-', '_')}.py"
        raise ImportError(f"{_name} is missing: the rules of {_api}", name=__name__)
for _profile in SERVERS:
    if _profile not in profile_names():
        raise ImportError(f"the rules of {_profile} are missing in segue/conformance/profiles", name=__name__)


def check(body: Body, api: Api, *, model: str | None = None, profile: Profile | str | None = None) -> Verdict:
    """Check a finished request body. The verdict is true if it would be accepted, and iterates over the violations.

    `profile` names a server with its own rules for the API, such as `vllm` or `groq` for `openai-chat`.
    A body of another API raises `InputError`.
    """
    require_string(model, "model", required=False)
    row = find_wire_or_server(choose_api(api, body, None, argument="api"), profile, argument="api")
    body = wrap_messages(body, row.name)
    value, _ = parse_json_object(body)
    reject_duplicate_key(body, row.conversation_key)
    other = find_contradicting_api(value, row.name)
    if other is not None:
        raise InputError(f"this is a body of {other}, not of {row.name}")
    if model is None and row.served_model is not None and not parse_model(value.get("model")).family:
        model = row.served_model
    return check_body(value, row.name, model=model, profile=row.profile)
