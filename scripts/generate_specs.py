"""Write `src/segue/specs/<api>.json`: the request types that vendors publish in their SDKs (`make specs`).

Where a service differs from its SDK is listed by hand in `<api>_overrides.json`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec

from segue.specs.types import PublishedTypes, Spec, ValueKind

FOLDER = Path(__file__).parent.parent / "src" / "segue" / "specs"

# -------------------------------------------------------------------------------------------------------------- gemini

# The classes that are written out. Other messages are objects without known members; values of other enumerations are
# not listed, since models add new ones.
_GEMINI_CLASSES = (
    *("Content", "Part", "Blob", "FileData", "FunctionCall", "FunctionResponse", "FunctionResponsePart"),
    *("ExecutableCode", "CodeExecutionResult", "ToolCall", "ToolResponse", "Tool", "FunctionDeclaration", "Schema"),
    *("Type", "ToolConfig", "FunctionCallingConfig", "FunctionCallingConfigMode"),
)
_GEMINI_SCALARS: Mapping[Any, Spec] = {
    str: Spec(kind="string"),
    bytes: Spec(kind="bytes"),
    bool: Spec(kind="boolean"),
    int: Spec(kind="integer"),
    float: Spec(kind="number"),
    Any: Spec(),
}


def gemini() -> PublishedTypes:
    """The messages of `generateContent` from google-genai, with field names in snake_case."""
    from google.genai import types as sdk

    return PublishedTypes(
        source=f"google-genai {version('google-genai')}",
        types={name: _gemini_class(getattr(sdk, name)) for name in _GEMINI_CLASSES},
    )


def _gemini_class(cls: Any) -> Spec:
    if issubclass(cls, Enum):
        return Spec(kind="string", values=tuple(str(member.value) for member in cls))
    fields = cls.model_fields.items()
    return Spec(kind="object", closed=True, members={name: _gemini_field(field.annotation) for name, field in fields})


def _gemini_field(annotation: Any) -> Spec:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _gemini_field(inner)
    if origin is list:
        return Spec(kind="list", items=_gemini_field(arguments[0]))
    if origin is dict:
        return Spec(kind="map", items=None if arguments[1] is Any else _gemini_field(arguments[1]))
    if annotation in _GEMINI_SCALARS:
        return _GEMINI_SCALARS[annotation]
    if annotation.__name__ in _GEMINI_CLASSES:
        return Spec(ref=annotation.__name__)
    return Spec() if issubclass(annotation, Enum) else Spec(kind="object")


# ------------------------------------------------------------------------------------------------------------- bedrock

_BEDROCK_SCALARS: Mapping[str, ValueKind] = {
    "string": "string",
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "blob": "bytes",
}


def bedrock() -> PublishedTypes:
    """The input of Converse from botocore's service model."""
    import botocore.session

    model = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse")
    types: dict[str, Spec] = {}
    _bedrock_shape(model.input_shape, types)
    return PublishedTypes(source=f"botocore {version('botocore')}", types=types)


def _bedrock_shape(shape: Any, types: dict[str, Spec]) -> Spec:
    """Return the spec of a shape. Structures and restricted scalars are added to `types`, and referred to."""
    if shape.type_name == "structure" and shape.is_document_type:
        return Spec()
    known = shape.metadata
    bounds = {"minimum": known.get("min"), "maximum": known.get("max")}
    if shape.type_name == "list":
        return Spec(kind="list", items=_bedrock_shape(shape.member, types), **bounds)
    if shape.type_name == "map":
        keys, items = _bedrock_shape(shape.key, types), _bedrock_shape(shape.value, types)
        return Spec(kind="map", items=items, keys=keys, **bounds)
    if shape.type_name == "structure":
        if shape.name not in types:
            types[shape.name] = Spec()
            types[shape.name] = Spec(
                kind="object",
                required=tuple(sorted(known.get("required", ()))),
                members={name: _bedrock_shape(member, types) for name, member in _bedrock_members(shape)},
                closed=True,
                exactly_one=bool(shape.is_tagged_union),
            )
        return Spec(ref=shape.name)
    spec = Spec(
        kind=_BEDROCK_SCALARS[shape.type_name],
        values=tuple(known.get("enum", ())),
        pattern=known.get("pattern", ""),
        **bounds,
    )
    if spec == Spec(kind=spec.kind):
        return spec
    types[shape.name] = spec
    return Spec(ref=shape.name)


def _bedrock_members(shape: Any) -> list[tuple[str, Any]]:
    """Return the members of a structure: required ones first, those of the URL last."""

    def order(member: tuple[str, Any]) -> tuple[bool, bool]:
        name, inner = member
        return inner.serialization.get("location") == "uri", name not in shape.metadata.get("required", ())

    return sorted(shape.members.items(), key=order)


# ------------------------------------------------------------------------------------------------------------- writing

APIS: Mapping[str, Callable[[], PublishedTypes]] = {"gemini": gemini, "bedrock": bedrock}


def format_types(published: PublishedTypes) -> str:
    """Return the text of a file: one line for each member."""
    entries = ",\n".join(f"    {json.dumps(name)}: {_format_type(spec)}" for name, spec in published.types.items())
    return f'{{\n  "source": {json.dumps(published.source)},\n  "types": {{\n{entries}\n  }}\n}}\n'


def _to_builtins(spec: Spec) -> Any:
    """Return a spec as JSON. `any` is the default of `kind` and is written where nothing else would be."""
    return json.loads(msgspec.json.encode(spec), object_hook=lambda fields: fields or {"kind": "any"})


def _format_type(spec: Spec) -> str:
    fields: dict[str, Any] = _to_builtins(spec)
    inner = {key: fields.pop(key) for key in ("members", "variants") if key in fields}
    head = json.dumps(fields)[:-1]
    return f"{head}{''.join(_format_table(key, table) for key, table in inner.items())}}}"


def _format_table(key: str, table: Mapping[str, Any]) -> str:
    rows: Iterator[str] = (f"\n      {json.dumps(name)}: {json.dumps(value)}" for name, value in table.items())
    return f', "{key}": {{{",".join(rows)}\n    }}'


if __name__ == "__main__":
    for api, generate in APIS.items():
        (FOLDER / f"{api}.json").write_text(format_types(generate()), "utf-8")
