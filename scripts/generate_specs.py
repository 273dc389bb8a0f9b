"""Write `src/segue/specs/<api>.json`: the request types that vendors publish in their SDKs (`make specs`).

Where a service differs from its SDK is listed by hand in `<api>_overrides.json`.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Required, Union, get_args, get_origin, get_type_hints

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
_SCALARS: Mapping[Any, Spec] = {
    str: Spec(kind="string"),
    bytes: Spec(kind="bytes"),
    bool: Spec(kind="boolean"),
    int: Spec(kind="integer"),
    float: Spec(kind="number"),
    object: Spec(),
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
    if annotation in _SCALARS:
        return _SCALARS[annotation]
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


# ------------------------------------------------------------------------------------------------------- azure-foundry

_FOUNDRY_KINDS: Mapping[str, ValueKind] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "map",
}
_KIND = re.compile(r"_is_type\(value, '(\w+)'\)")
_VALUES = re.compile(r"_allowed_values = (\(.*\))")
_NAMED_VALUES = re.compile(r"(_(?:schema|field)_literal_values)\('(\w+)'(?:, '(\w+)')?\)")
_CALL = re.compile(r"_validate_(\w+)\((?:value|_item), ")
_MEMBER = re.compile(r"_validate_(\w+)\(value\['(\w+)'\]")
_REQUIRED = re.compile(r"if '(\w+)' not in value")
_DISCRIMINATOR = re.compile(r"_disc_value = value\.get\('(\w+)'(?:, '(\w+)')?\)")
_VARIANT = re.compile(r"_disc_value == '([^']+)':\s+_validate_(\w+)\(")


def azure_foundry() -> PublishedTypes:
    """The request of the Responses API, read from the source of azure-ai-agentserver-responses.

    The package has no schema as data. Its generated functions `_validate_NAME(value, path, errors)` are regular.
    """
    from azure.ai.agentserver.responses.models import _request_validators as validators

    reader = _ValidatorReader(validators)
    reader.read("CreateResponse")
    return PublishedTypes(
        source=f"azure-ai-agentserver-responses {version('azure-ai-agentserver-responses')}", types=reader.types
    )


class _ValidatorReader:
    """Reads the specs that the validators check. Objects are collected in `types`, and referred to."""

    def __init__(self, validators: Any) -> None:
        self.types: dict[str, Spec] = {}
        self._validators = validators

    def read(self, name: str) -> Spec:
        """Return the spec that the function `_validate_NAME` checks."""
        short = name.removeprefix("OpenAI_")
        if short in self.types:
            return Spec(ref=short)
        text = inspect.getsource(getattr(self._validators, f"_validate_{name}"))
        spec = self._read_unchecked(text, short)
        if "if value is None:" not in text:
            return spec
        return msgspec.structs.replace(spec, nullable=True)

    def _read_unchecked(self, text: str, short: str) -> Spec:
        """Return the spec without null."""
        called = _CALL.findall(text)
        kind = _KIND.search(text)
        if "_matched_union" in text:
            return self._read_union(called)
        if "_allowed_values" in text:
            # The allowed values of a field replace those of its type, which decides on null.
            inner = self.read(called[0]) if called else Spec(kind="string")
            values = self._read_values(text)
            return msgspec.structs.replace(inner, values=values) if values else inner
        if _DISCRIMINATOR.search(text):
            return self._read_tagged(text, short)
        if kind is None:
            return self.read(called[0]) if called else Spec()
        if _MEMBER.search(text):
            return self._read_object(text, short)
        if called and "_item" not in text:
            return self.read(called[0])
        items = self.read(called[0]) if called else None
        return Spec(kind=_FOUNDRY_KINDS[kind[1]], items=None if items == Spec() else items)

    def _read_union(self, called: list[str]) -> Spec:
        """Return the alternatives. Null has none of their types; any string makes listed strings superfluous."""
        options = [msgspec.structs.replace(self.read(name), nullable=False) for name in called]
        if Spec(kind="string") in options:
            options = [option for option in options if not option.values]
        return options[0] if len(options) == 1 else Spec(any_of=tuple(options))

    def _read_values(self, text: str) -> tuple[str, ...]:
        if written := _VALUES.search(text):
            return ast.literal_eval(written[1])
        if named := _NAMED_VALUES.search(text):
            found = getattr(self._validators, named[1])(*filter(None, named.groups()[1:]))
            return (found[0] if named[1] == "_schema_literal_values" else found) or ()
        return ()

    def _read_tagged(self, text: str, short: str) -> Spec:
        self.types[short] = Spec()
        discriminator, default = next(iter(_DISCRIMINATOR.findall(text)))
        allowed = {member: self.read(called).values for called, member in _MEMBER.findall(text)}[discriminator]
        pairs = ((value, called) for value, called in _VARIANT.findall(text) if not allowed or value in allowed)
        variants = {value: self.read(called) for value, called in pairs}
        self.types[short] = Spec(kind="object", discriminator=discriminator, default=default, variants=variants)
        return Spec(ref=short)

    def _read_object(self, text: str, short: str) -> Spec:
        self.types[short] = Spec()
        required = sorted(_REQUIRED.findall(text))
        members = {member: self.read(called) for called, member in _MEMBER.findall(text)}
        ordered = {name: members[name] for name in sorted(members, key=lambda name: name not in required)}
        self.types[short] = Spec(kind="object", required=tuple(required), members=ordered)
        return Spec(ref=short)


# ---------------------------------------------------------------------------------------------------- openai-responses


def openai_responses() -> PublishedTypes:
    """The input items of the Responses API and of its beta from openai, by their `type`.

    The types inside a member are left out, and of enumerations all but the statuses.
    """
    from openai.types.beta.beta_response_input_item_param import BetaResponseInputItemParam
    from openai.types.responses.response_input_item_param import ResponseInputItemParam

    types: dict[str, Spec] = {}
    for item in (*get_args(BetaResponseInputItemParam), *get_args(ResponseInputItemParam)):
        hints = get_type_hints(item, include_extras=True)
        (name,) = re.findall(r"Literal\['(\w+)'\]", str(hints["type"]))
        spec = Spec(
            kind="object",
            required=tuple(key for key, hint in hints.items() if get_origin(hint) is Required),
            members={key: _responses_member(key, hint) for key, hint in get_type_hints(item).items()},
        )
        types[name] = _merge_objects(types[name], spec) if name in types else spec
    return PublishedTypes(source=f"openai {version('openai')}", types=types)


def _merge_objects(first: Spec, second: Spec) -> Spec:
    """Return an object of either type."""
    members = {**first.members, **second.members}
    for key in first.members.keys() & second.members.keys():
        if first.members[key] != second.members[key]:
            members[key] = Spec()
    required = tuple(key for key in first.required if key in second.required)
    return Spec(kind="object", required=required, members=members)


def _responses_member(key: str, hint: Any) -> Spec:
    options = get_args(hint) if get_origin(hint) is Union else (hint,)
    kinds = {_responses_kind(option) for option in options if option is not type(None)}
    return Spec(
        kind=kinds.pop() if len(kinds) == 1 else "any",
        nullable=type(None) in options,
        values=tuple(value for option in options for value in get_args(option)) if key == "status" else (),
    )


def _responses_kind(hint: Any) -> ValueKind:
    if get_origin(hint) is Literal:
        return "string"
    if get_origin(hint) is not None:
        return "list"
    return "object" if issubclass(hint, dict) else _SCALARS[hint].kind


# ------------------------------------------------------------------------------------------------------------- writing

APIS: Mapping[str, Callable[[], PublishedTypes]] = {
    "gemini": gemini,
    "bedrock": bedrock,
    "azure-foundry": azure_foundry,
    "openai-responses": openai_responses,
}


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
