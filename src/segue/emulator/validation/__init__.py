"""Validation of request bodies that providers do before they look at the conversation.

The conformance rules cover history, ids, tools and reasoning. The emulator's own checks are here: types of members,
unknown members, content parts of another API, invalid JSON Schemas, and models of other vendors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from segue.emulator import errors
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation import openai_chat
from segue.models import parse_model
from segue.wire.base import ApiError
from segue.wire.registry import WIRES

Validator: TypeAlias = Callable[[Mapping[str, Any], HttpRequest], ApiError | None]


def validate(
    api: str, body: Mapping[str, Any], http_request: HttpRequest, *, profile: str | None = None
) -> ApiError | None:
    """Return the provider's error for an invalid body, `None` if it is valid."""
    if profile is not None:
        return openai_chat.validate_messages(body) if api == "openai-chat" else None
    error = _find_validator(api)(body, http_request)
    if error is None and _is_other_vendors_model(api, body.get("model")):
        return errors.standard_errors(api).no_model(str(body["model"]))
    return error


@cache
def _find_validator(api: str) -> Validator:
    """Return `validate` of the module with the API's name; chat APIs without one check the messages only."""
    name = f"{__name__}.{api.replace('-', '_')}"
    if find_spec(name) is not None:
        return import_module(name).validate
    if WIRES[api].base_api == "openai-chat":
        return lambda body, _: openai_chat.validate_messages(body)
    return lambda _body, _request: None


def _is_other_vendors_model(api: str, model: object) -> bool:
    """Return whether the provider does not serve this model's family. Unknown names are accepted."""
    family = parse_model(model).family if isinstance(model, str) else ""
    served = WIRES[api].served_families
    return bool(family) and served is not None and family not in served
