"""What botocore knows of Converse: its service model and its refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

SHAPE: Any = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def refusal(body: dict[str, Any]) -> str:
    """Why botocore would not send the body, or the service by its model not take it; empty if neither."""
    params = {"modelId": "m", **body}
    report = ParamValidator().validate(params, SHAPE)
    return report.generate_report() or "\n".join(_beyond_the_client(params, SHAPE, "body"))


def _beyond_the_client(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Maxima, patterns and sets of values, which the client leaves to the service. The types are known to be right."""
    known = shape.metadata
    size = len(value) if hasattr(value, "__len__") else value
    if "max" in known and size > known["max"]:
        yield f"{path}: above {known['max']}"
    # Minima of maps and blobs too are looked at by nobody but the service.
    if "min" in known and shape.type_name in ("map", "blob") and size < known["min"]:
        yield f"{path}: below {known['min']}"
    if "enum" in known and value not in known["enum"]:
        yield f"{path}: none of {known['enum']}"
    if "pattern" in known and not re.fullmatch(known["pattern"], value):
        yield f"{path}: does not match {known['pattern']}"
    if shape.type_name == "structure" and not shape.is_document_type:
        for name, entry in value.items():
            yield from _beyond_the_client(entry, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, entry in enumerate(value):
            yield from _beyond_the_client(entry, shape.member, f"{path}[{index}]")
    elif shape.type_name == "map":
        for name, entry in value.items():
            yield from _beyond_the_client(name, shape.key, f"{path} key")
            yield from _beyond_the_client(entry, shape.value, f"{path}.{name}")
