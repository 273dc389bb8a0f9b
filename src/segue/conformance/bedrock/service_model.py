"""The service model of Converse as data: members with patterns, lengths and sets of values.

`REQUEST` is the whole input; `modelId` is usually in the URL instead. Media are base64 text.
"""

from __future__ import annotations

from segue.specs.types import (
    ANY,
    BOOLEAN,
    STRING,
    Spec,
    bounded,
    closed_object,
    enum_of,
    list_of,
    map_of,
    union_of,
)

__all__ = ["MODEL_ID", "REQUEST", "ROLE", "SYSTEM_TEXT", "TOOL_NAME", "TOOL_USE_ID"]

TOOL_USE_ID = bounded("string", 1, 64, "[a-zA-Z0-9_.:-]+")
TOOL_NAME = bounded("string", 1, 64, "[a-zA-Z0-9_-]+")
SYSTEM_TEXT = bounded("string", 1)
ROLE = enum_of("user", "assistant", "system")

_ARN = "arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:"
_NAME = "[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}"
_PROFILE = "([0-9]{12}:(inference-profile|application-inference-profile)/[a-zA-Z0-9-:.]+)"
_OWNED = "|".join(f"([0-9]{{12}}:{kind}/[a-z0-9]{{12}})" for kind in ("imported-model", "provisioned-model"))
MODEL_ID = bounded(
    "string",
    1,
    2048,
    f"({_ARN}(([0-9]{{12}}:custom-model/{_NAME}/[a-z0-9]{{12}})|(:foundation-model/{_NAME}([.:]?[a-z0-9-]{{1,63}}))"
    f"|{_OWNED}|([0-9]{{12}}:custom-model-deployment/[a-z0-9]{{12}})|{_PROFILE}))"
    f"|({_NAME}([.:]?[a-z0-9-]{{1,63}}))|(([0-9a-zA-Z][_-]?)+)|([a-zA-Z0-9-:.]+)"
    rf"|(^({_ARN}[0-9]{{12}}:prompt/[0-9a-zA-Z]{{10}}(?::[0-9]{{1,5}})?))$"
    "|(^arn:aws:sagemaker:[a-z0-9-]+:[0-9]{12}:endpoint/[a-zA-Z0-9-]+$)"
    "|(^arn:aws(-[^:]+)?:bedrock:([0-9a-z-]{1,20}):([0-9]{12}):(default-)?prompt-router/[a-zA-Z0-9-:.]+$)",
)

_BYTES = bounded("bytes", 1)
_INDEX = bounded("integer", 0)
_S3 = closed_object(
    {"uri": bounded("string", 1, 1024, r"s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](/.*)?")},
    bucketOwner=bounded("string", pattern="[0-9]{12}"),
)
_MEDIA = union_of(bytes=_BYTES, s3Location=_S3)
_ERROR = closed_object(message=STRING)
_CITATIONS = closed_object({"enabled": BOOLEAN})
_CACHE = closed_object({"type": enum_of("default")}, ttl=enum_of("5m", "1h"))

_IMAGE = closed_object({"format": enum_of("png", "jpeg", "gif", "webp"), "source": _MEDIA}, error=_ERROR)
_VIDEO = closed_object(
    {"format": enum_of("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"), "source": _MEDIA},
)
_AUDIO = closed_object(
    {
        "format": enum_of(
            *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv"),
            *("mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm"),
        ),
        "source": _MEDIA,
    },
    error=_ERROR,
)
_DOCUMENT = closed_object(
    {
        "name": bounded("string", 1, 200),
        "source": union_of(bytes=_BYTES, s3Location=_S3, text=STRING, content=list_of(union_of(text=STRING))),
    },
    format=enum_of("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
    context=STRING,
    citations=_CITATIONS,
)
_SEARCH_RESULT = closed_object(
    {"source": STRING, "title": STRING, "content": list_of(closed_object({"text": STRING}))},
    citations=_CITATIONS,
)
_GUARD_CONTENT = union_of(
    text=closed_object({"text": STRING}, qualifiers=list_of(enum_of("grounding_source", "query", "guard_content"))),
    image=closed_object({"format": enum_of("png", "jpeg"), "source": union_of(bytes=_BYTES)}),
)
_SPAN = closed_object(documentIndex=_INDEX, start=_INDEX, end=_INDEX)
_CITATIONS_CONTENT = closed_object(
    content=list_of(union_of(text=STRING)),
    citations=list_of(
        closed_object(
            title=STRING,
            source=STRING,
            sourceContent=list_of(union_of(text=STRING)),
            location=union_of(
                web=closed_object(url=STRING, domain=STRING),
                documentChar=_SPAN,
                documentPage=_SPAN,
                documentChunk=_SPAN,
                searchResultLocation=closed_object(searchResultIndex=_INDEX, start=_INDEX, end=_INDEX),
            ),
        )
    ),
)
_TOOL_REFERENCE = closed_object(
    {
        "tool": closed_object(
            type=bounded("string", 1, 64),
            name=bounded("string", 1, 128),
            serverName=bounded("string", 1, 128),
        )
    },
)
_TOOL_USE = closed_object(
    {"toolUseId": TOOL_USE_ID, "name": TOOL_NAME, "input": ANY},
    type=enum_of("server_tool_use"),
)
_TOOL_RESULT = closed_object(
    {
        "toolUseId": TOOL_USE_ID,
        "content": list_of(
            union_of(json=ANY, text=STRING, image=_IMAGE, document=_DOCUMENT, video=_VIDEO, searchResult=_SEARCH_RESULT)
        ),
    },
    status=enum_of("success", "error"),
    type=STRING,
)
_CONTENT = union_of(
    text=STRING,
    image=_IMAGE,
    document=_DOCUMENT,
    video=_VIDEO,
    audio=_AUDIO,
    toolUse=_TOOL_USE,
    toolResult=_TOOL_RESULT,
    guardContent=_GUARD_CONTENT,
    cachePoint=_CACHE,
    reasoningContent=union_of(
        reasoningText=closed_object({"text": STRING}, signature=STRING), redactedContent=Spec(kind="bytes")
    ),
    citationsContent=_CITATIONS_CONTENT,
    searchResult=_SEARCH_RESULT,
    toolAddition=_TOOL_REFERENCE,
    toolRemoval=_TOOL_REFERENCE,
)
_TOOL = union_of(
    toolSpec=closed_object(
        {"name": TOOL_NAME, "inputSchema": union_of(json=ANY)},
        description=bounded("string", 1),
        strict=BOOLEAN,
    ),
    systemTool=closed_object({"name": TOOL_NAME}),
    cachePoint=_CACHE,
)
_EMPTY_OBJECT = closed_object()
_METADATA_CHARACTER = r"[a-zA-Z0-9\s:_@$#=/+,-.]"
_PROBABILITY = bounded("number", 0, 1)

REQUEST = closed_object(
    messages=list_of(closed_object({"role": ROLE, "content": list_of(_CONTENT)})),
    system=list_of(union_of(text=SYSTEM_TEXT, guardContent=_GUARD_CONTENT, cachePoint=_CACHE)),
    inferenceConfig=closed_object(
        maxTokens=bounded("integer", 1),
        temperature=_PROBABILITY,
        topP=_PROBABILITY,
        stopSequences=list_of(bounded("string", 1), 0, 2500),
    ),
    toolConfig=closed_object(
        {"tools": list_of(_TOOL, 1)},
        toolChoice=union_of(auto=_EMPTY_OBJECT, any=_EMPTY_OBJECT, tool=closed_object({"name": TOOL_NAME})),
    ),
    guardrailConfig=closed_object(
        guardrailIdentifier=bounded("string", 0, 2048, f"(|([a-z0-9]+)|({_ARN}[0-9]{{12}}:guardrail/[a-z0-9]+))"),
        guardrailVersion=bounded("string", pattern="(|([1-9][0-9]{0,7})|(DRAFT))"),
        trace=enum_of("enabled", "disabled", "enabled_full"),
    ),
    additionalModelRequestFields=ANY,
    promptVariables=map_of(union_of(text=STRING), STRING),
    additionalModelResponseFieldPaths=list_of(bounded("string", 1, 256), 0, 10),
    requestMetadata=map_of(
        bounded("string", 0, 256, f"{_METADATA_CHARACTER}{{0,256}}"),
        bounded("string", 1, 256, f"{_METADATA_CHARACTER}{{1,256}}"),
        1,
        16,
    ),
    performanceConfig=closed_object(latency=enum_of("standard", "optimized")),
    serviceTier=closed_object({"type": enum_of("priority", "default", "flex", "reserved")}),
    outputConfig=closed_object(
        textFormat=closed_object(
            {
                "type": enum_of("json_schema"),
                "structure": union_of(jsonSchema=closed_object({"schema": STRING}, name=STRING, description=STRING)),
            },
        ),
        effort=bounded("string", 0, 16),
    ),
    modelId=MODEL_ID,
)
