"""Checks a Converse body by botocore's service model: its validator, and the patterns and lengths that it skips;
and the few sentences of the API's reference that stand in neither."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

Body = dict[str, Any]


@cache
def operation() -> Any:
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse")


def as_parameters(body: Body) -> Body:
    """The body as boto3 takes it: blobs are bytes there, and base64 text in JSON."""
    return _with_bytes({"modelId": "a-model", **body}, operation().input_shape)


def _with_bytes(value: Any, shape: Any) -> Any:
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value)
    if shape.type_name == "structure" and isinstance(value, dict) and not shape.is_document_type:
        return {
            key: _with_bytes(inner, shape.members[key]) if key in shape.members else inner
            for key, inner in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [_with_bytes(inner, shape.member) for inner in value]
    return value


def complaints(body: Body) -> list[str]:
    """All that the service model has against a body."""
    parameters = as_parameters(body)
    report = ParamValidator().validate(parameters, operation().input_shape)
    found = [report.generate_report()] if report.has_errors() else []
    return [*found, *_constraints(parameters, operation().input_shape, ""), *_documents(body)]


def _documents(body: Body) -> Iterator[str]:
    """What the API's reference says of `DocumentBlock`, and no machine-readable model does."""
    names: list[str] = []
    for message in body["messages"]:
        held = [block["document"]["name"] for block in message["content"] if "document" in block]
        if held and not any("text" in block for block in message["content"]):
            yield f"you must also include a text field: {held}"
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        inside = [part["document"]["name"] for one in results for part in one["content"] if "document" in part]
        names += [*held, *inside]
    yield from (f"odd: {name!r}" for name in names if not re.fullmatch(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]+", name))
    if len(set(names)) < len(names):
        yield f"messages can't contain duplicate document names: {names}"


def _constraints(value: Any, shape: Any, path: str) -> Iterator[str]:
    limits = shape.metadata
    if shape.type_name == "structure" and isinstance(value, dict) and not shape.is_document_type:
        for key, inner in value.items():
            if key in shape.members:
                yield from _constraints(inner, shape.members[key], f"{path}.{key}")
    elif shape.type_name == "list" and isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _constraints(inner, shape.member, f"{path}[{at}]")
    size: Any = len(value) if isinstance(value, str | list | bytes) else value
    sized = isinstance(size, int | float) and shape.type_name != "structure"
    if sized and not limits.get("min", size) <= size <= limits.get("max", size):
        yield f"{path}: {size} is not between {limits.get('min')} and {limits.get('max')}"
    if isinstance(value, str):
        if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
            yield f"{path}: {value!r} does not satisfy {limits['pattern']}"
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value!r} is not one of {shape.enum}"
