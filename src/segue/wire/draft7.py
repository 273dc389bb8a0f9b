"""Whether a value is a valid draft 7 JSON Schema (MIS-13), by the meta-schema in `specs/draft7.json`.

jsonschema-rs has a newer edition of it, which also checks `writeOnly`; Mistral's validator does not.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from jsonschema_rs import Draft7Validator


def is_draft7(schema: object) -> bool:
    """Return whether the meta-schema accepts a schema; the texts of patterns and URIs are not checked.

    The validator is recursive and would overflow the stack at thousands of levels. A parsed body has at most 500.
    """
    return _meta_validator().is_valid(schema)


@cache
def _meta_validator() -> Draft7Validator:
    # Imported here because only same-API bodies for Mistral and MiniMax are checked.
    from importlib import resources

    from jsonschema_rs import Draft7Validator

    meta_schema = msgspec.json.decode(resources.files("segue.specs").joinpath("draft7.json").read_bytes())
    return Draft7Validator(meta_schema, validate_formats=False)
