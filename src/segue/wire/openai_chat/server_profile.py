"""Server profiles: servers that serve `openai-chat` with rules of their own (COMP-*), as differences from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from segue.models import Model
from segue.render.constraints import Constraints
from segue.wire.base import Wire
from segue.wire.ids import IdScheme
from segue.wire.openai_chat import OPENAI_DIALECT, make_wire

__all__ = ["Row", "make_server_wire"]

Row = Mapping[str, Any]
_NOTHING: Row = {}

# Common to all servers: features that only OpenAI has are disabled.
_DIALECT: Row = {
    "default_model": "",
    "developer_role": False,
    "custom_tools": False,
    "vendor_options": False,
    "legacy_calls": False,
    "refusals": False,
    "invalid_json_arguments": False,
    "media": frozenset({"image"}),
    "max_tokens_key": "max_tokens",
    "description_limit": None,
    "strict_schema_rules": None,
}
_CONSTRAINTS: Row = {
    "unpaired_without_id": False,
    "later_system": "text",
    "reasoning_excludes_tools": False,
    "file_id_kinds": frozenset[str](),
    "media_in_user": frozenset({"image"}),
}


def _no_changes(_model: Model) -> Row:
    return _NOTHING


def make_server_wire(
    name: str,
    dialect: Row = _NOTHING,
    constraints: Row = _NOTHING,
    *,
    by_model: Callable[[Model], Row] = _no_changes,
    ids: Callable[[Model], IdScheme] = OPENAI_DIALECT.ids,
) -> Wire:
    """Build the wire of a server profile.

    `dialect` and `constraints` hold the fields of `ChatDialect` and `Constraints` that differ; `by_model` returns the
    constraints that depend on the model.
    """

    def constraints_of(model: Model) -> Constraints:
        id_pattern = {"id_pattern": ids(model).pattern}
        row = {**_CONSTRAINTS, **constraints, **by_model(model), **id_pattern}
        return msgspec.structs.replace(OPENAI_DIALECT.constraints(model), **row)

    fixed = {"kind": "server", "profile": name, "constraints": constraints_of, "ids": ids}
    return make_wire(msgspec.structs.replace(OPENAI_DIALECT, **{**_DIALECT, **dialect, **fixed}))
