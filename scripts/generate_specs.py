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

from segue.specs.types import PublishedTypes, Spec

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


# ------------------------------------------------------------------------------------------------------------- writing

APIS: Mapping[str, Callable[[], PublishedTypes]] = {"gemini": gemini}


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
