"""The service model of Converse as data: members with patterns, lengths and sets of values.

`REQUEST` is the whole input; `modelId` is usually in the URL instead. Media are base64 text.
"""

from __future__ import annotations

from segue.conformance.form import ANY, BOOLEAN, TEXT, Form, closed, entries, mapped, one_of, sized, text

__all__ = ["MODEL_ID", "REQUEST", "ROLE", "SYSTEM_TEXT", "TOOL_NAME", "TOOL_USE_ID"]

TOOL_USE_ID = sized("string", 1, 64, "[a-zA-Z0-9_.:-]+")
TOOL_NAME = sized("string", 1, 64, "[a-zA-Z0-9_-]+")
SYSTEM_TEXT = sized("string", 1)
ROLE = text("user", "assistant", "system")

_ARN = "arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:"
_NAME = "[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}"
_PROFILE = "([0-9]{12}:(inference-profile|application-inference-profile)/[a-zA-Z0-9-:.]+)"
_OWNED = "|".join(f"([0-9]{{12}}:{kind}/[a-z0-9]{{12}})" for kind in ("imported-model", "provisioned-model"))
MODEL_ID = sized(
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

_BYTES = sized("bytes", 1)
_INDEX = sized("integer", 0)
_S3 = closed(
    {"uri": sized("string", 1, 1024, r"s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](/.*)?")},
    bucketOwner=sized("string", pattern="[0-9]{12}"),
)
_MEDIA = one_of(bytes=_BYTES, s3Location=_S3)
_ERROR = closed(message=TEXT)
_CITATIONS = closed({"enabled": BOOLEAN})
_CACHE = closed({"type": text("default")}, ttl=text("5m", "1h"))

_IMAGE = closed({"format": text("png", "jpeg", "gif", "webp"), "source": _MEDIA}, error=_ERROR)
_VIDEO = closed(
    {"format": text("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"), "source": _MEDIA},
)
_AUDIO = closed(
    {
        "format": text(
            *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv"),
            *("mka", "x-aac", "m4a", "mpeg", "mpga", "pcm", "webm"),
        ),
        "source": _MEDIA,
    },
    error=_ERROR,
)
_DOCUMENT = closed(
    {
        "name": sized("string", 1, 200),
        "source": one_of(bytes=_BYTES, s3Location=_S3, text=TEXT, content=entries(one_of(text=TEXT))),
    },
    format=text("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
    context=TEXT,
    citations=_CITATIONS,
)
_FOUND = closed(
    {"source": TEXT, "title": TEXT, "content": entries(closed({"text": TEXT}))},
    citations=_CITATIONS,
)
_GUARDED = one_of(
    text=closed({"text": TEXT}, qualifiers=entries(text("grounding_source", "query", "guard_content"))),
    image=closed({"format": text("png", "jpeg"), "source": one_of(bytes=_BYTES)}),
)
_SPAN = closed(documentIndex=_INDEX, start=_INDEX, end=_INDEX)
_CITED = closed(
    content=entries(one_of(text=TEXT)),
    citations=entries(
        closed(
            title=TEXT,
            source=TEXT,
            sourceContent=entries(one_of(text=TEXT)),
            location=one_of(
                web=closed(url=TEXT, domain=TEXT),
                documentChar=_SPAN,
                documentPage=_SPAN,
                documentChunk=_SPAN,
                searchResultLocation=closed(searchResultIndex=_INDEX, start=_INDEX, end=_INDEX),
            ),
        )
    ),
)
_TOOL_REFERENCE = closed(
    {
        "tool": closed(
            type=sized("string", 1, 64),
            name=sized("string", 1, 128),
            serverName=sized("string", 1, 128),
        )
    },
)
_TOOL_USE = closed(
    {"toolUseId": TOOL_USE_ID, "name": TOOL_NAME, "input": ANY},
    type=text("server_tool_use"),
)
_TOOL_RESULT = closed(
    {
        "toolUseId": TOOL_USE_ID,
        "content": entries(
            one_of(json=ANY, text=TEXT, image=_IMAGE, document=_DOCUMENT, video=_VIDEO, searchResult=_FOUND)
        ),
    },
    status=text("success", "error"),
    type=TEXT,
)
_CONTENT = one_of(
    text=TEXT,
    image=_IMAGE,
    document=_DOCUMENT,
    video=_VIDEO,
    audio=_AUDIO,
    toolUse=_TOOL_USE,
    toolResult=_TOOL_RESULT,
    guardContent=_GUARDED,
    cachePoint=_CACHE,
    reasoningContent=one_of(reasoningText=closed({"text": TEXT}, signature=TEXT), redactedContent=Form(kind="bytes")),
    citationsContent=_CITED,
    searchResult=_FOUND,
    toolAddition=_TOOL_REFERENCE,
    toolRemoval=_TOOL_REFERENCE,
)
_TOOL = one_of(
    toolSpec=closed(
        {"name": TOOL_NAME, "inputSchema": one_of(json=ANY)},
        description=sized("string", 1),
        strict=BOOLEAN,
    ),
    systemTool=closed({"name": TOOL_NAME}),
    cachePoint=_CACHE,
)
_NOTHING = closed()
_WORD = r"[a-zA-Z0-9\s:_@$#=/+,-.]"
_SHARE = sized("number", 0, 1)

REQUEST = closed(
    messages=entries(closed({"role": ROLE, "content": entries(_CONTENT)})),
    system=entries(one_of(text=SYSTEM_TEXT, guardContent=_GUARDED, cachePoint=_CACHE)),
    inferenceConfig=closed(
        maxTokens=sized("integer", 1),
        temperature=_SHARE,
        topP=_SHARE,
        stopSequences=entries(sized("string", 1), 0, 2500),
    ),
    toolConfig=closed(
        {"tools": entries(_TOOL, 1)},
        toolChoice=one_of(auto=_NOTHING, any=_NOTHING, tool=closed({"name": TOOL_NAME})),
    ),
    guardrailConfig=closed(
        guardrailIdentifier=sized("string", 0, 2048, f"(|([a-z0-9]+)|({_ARN}[0-9]{{12}}:guardrail/[a-z0-9]+))"),
        guardrailVersion=sized("string", pattern="(|([1-9][0-9]{0,7})|(DRAFT))"),
        trace=text("enabled", "disabled", "enabled_full"),
    ),
    additionalModelRequestFields=ANY,
    promptVariables=mapped(one_of(text=TEXT), TEXT),
    additionalModelResponseFieldPaths=entries(sized("string", 1, 256), 0, 10),
    requestMetadata=mapped(
        sized("string", 0, 256, f"{_WORD}{{0,256}}"), sized("string", 1, 256, f"{_WORD}{{1,256}}"), 1, 16
    ),
    performanceConfig=closed(latency=text("standard", "optimized")),
    serviceTier=closed({"type": text("priority", "default", "flex", "reserved")}),
    outputConfig=closed(
        textFormat=closed(
            {
                "type": text("json_schema"),
                "structure": one_of(jsonSchema=closed({"schema": TEXT}, name=TEXT, description=TEXT)),
            },
        ),
        effort=sized("string", 0, 16),
    ),
    modelId=MODEL_ID,
)
