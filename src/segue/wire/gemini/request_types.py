"""The fields of `generateContent` requests with their types, and the removal of everything else.

The API rejects unknown fields, so they are dropped from same-API bodies too. Parts of an unknown type are kept: they
may be newer than this table. Keys may be in snake_case, null means absent, and a single value may replace a list.
"""

from __future__ import annotations

import re
from typing import Any, cast

from segue.render.report import Report
from segue.wire.gemini.fields import JsonObject, both_cases

__all__ = ["REQUEST_TYPES", "drop_invalid_fields", "is_unknown_part"]

# From the SDK's request types: field and type, `[]` for a list, text where no type is given. `any` and `object` are not
# checked any further.
_TYPE_LINES = """
request: model contents=[]content systemInstruction=content tools=[]tool toolConfig=toolConfig
    safetySettings=[]object generationConfig=object cachedContent serviceTier=any store=any labels=object
    continuationToken=any modelArmorConfig=object outputConfig=object
content: role parts=[]part
part: text inlineData=blob fileData=file functionCall=functionCall functionResponse=functionResponse
    executableCode=executableCode codeExecutionResult=codeExecutionResult toolCall=toolCall toolResponse=toolResponse
    thought=bool thoughtSignature partMetadata=object mediaResolution=any videoMetadata=object
    audioTranscription=object mediaProcessing=any speechMetadata=object
blob: data displayName mimeType
file: fileUri displayName mimeType
functionCall: id name args=object partialArgs=[]object willContinue=bool
functionResponse: id name response=object parts=[]functionResponsePart willContinue=bool scheduling=any
functionResponsePart: inlineData=blob fileData=file mediaProcessing=any
executableCode: id code language=any
codeExecutionResult: id outcome=any output
toolCall: id toolType=any args=object
toolResponse: id toolType=any response=object
tool: functionDeclarations=[]function retrieval=object computerUse=object fileSearch=object googleSearch=object
    googleMaps=object codeExecution=object enterpriseWebSearch=object googleSearchRetrieval=object
    parallelAiSearch=object urlContext=object mcpServers=[]object exaAiSearch=object
function: name description parameters=any parametersJsonSchema=any response=any responseJsonSchema=any behavior=any
toolConfig: functionCallingConfig=functionCallingConfig retrievalConfig=object includeServerSideToolInvocations=bool
functionCallingConfig: mode=mode allowedFunctionNames=[]text streamFunctionCallArguments=bool
"""
_MODES = frozenset({"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"})


def _parse_line(line: str) -> dict[str, str]:
    pairs = (field.partition("=") for field in line.split())
    return {key: kind or "text" for name, _, kind in pairs for key in both_cases(name)}


REQUEST_TYPES: dict[str, dict[str, str]] = {
    name: _parse_line(line) for name, line in re.findall(r"^(\w+):((?:.|\n )*)", _TYPE_LINES, re.MULTILINE)
}


_DATA_FIELDS = both_cases(
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)


def is_unknown_part(part: JsonObject) -> bool:
    """Whether the only data of a part is one object under an unknown key."""
    present = [key for key, value in part.items() if value is not None]
    unknown = [key for key in present if key not in REQUEST_TYPES["part"]]
    return len(unknown) == 1 and isinstance(part[unknown[0]], dict) and _DATA_FIELDS.isdisjoint(present)


def drop_invalid_fields(value: JsonObject, kind: str, report: Report) -> JsonObject:
    """The object without fields that the API rejects; the same object if there are none."""
    cleaned = value
    fields = REQUEST_TYPES[kind]
    if kind == "part" and is_unknown_part(value):
        fields = {**fields, **{key: "any" for key in value if key not in fields and value[key] is not None}}
    for key, item in value.items():
        kept = _keep_valid(item, fields[key], report) if key in fields and item is not None else None
        if kept is item and key in fields:
            continue
        if cleaned is value:
            cleaned = dict(value)
        if kept is None:
            report.add("dropped", f"`{key}` of a {kind} dropped: not a valid Gemini field", subject=key)
            del cleaned[key]
        else:
            cleaned[key] = kept
    return cleaned


def _keep_valid(value: Any, kind: str, report: Report) -> Any:
    """The value without invalid parts; None if nothing of it is valid."""
    if kind.startswith("[]"):
        items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        kept: list[Any] = [_keep_valid(item, kind[2:], report) for item in items]
        same = all(new is old for new, old in zip(kept, items, strict=True))
        return cast("object", value) if same else [item for item in kept if item is not None] or None
    if kind in REQUEST_TYPES:
        return drop_invalid_fields(cast("JsonObject", value), kind, report) if isinstance(value, dict) else None
    match kind:
        case "any":
            valid = True
        case "object":
            valid = isinstance(value, dict)
        case "bool":
            valid = isinstance(value, bool) or value in ("true", "false")
        case "mode":
            valid = value.upper() in _MODES if isinstance(value, str) else isinstance(value, int)
        case _:
            valid = isinstance(value, str)
    return value if valid else None
