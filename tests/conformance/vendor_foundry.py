"""The verdict of the vendor's own server library on a Foundry body."""

from __future__ import annotations

import copy
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from azure.ai.agentserver.responses._id_generator import IdGenerator
    from azure.ai.agentserver.responses.hosting._validation import parse_and_validate_create_response
    from azure.ai.agentserver.responses.models._errors import RequestValidationError
    from azure.ai.agentserver.responses.models._generated import types

NAMES: tuple[str, ...] = tuple(
    sorted({name for kind in list(vars(types).values()) for name in getattr(kind, "__annotations__", ())})
)
"""Every key of the vendor's types."""


def refusal(body: dict[str, Any]) -> str:
    """Why the library refuses the body; empty if it does not."""
    try:
        parse_and_validate_create_response(copy.deepcopy(body))
    except RequestValidationError as refused:
        return f"{refused}: {refused.details}"
    return ""


def is_id(name: str, *prefixes: str) -> bool:
    """Whether the library takes this for an id of its own."""
    return IdGenerator.is_valid(name, allowed_prefixes=list(prefixes) or None)[0]
