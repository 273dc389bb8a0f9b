"""Specs of the tools that Foundry accepts: those of Responses and those of the service itself (AZF-03)."""

from __future__ import annotations

from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Spec,
    any_of,
    enum_of,
    list_of,
    map_of,
    nullable,
    object_of,
    tagged,
)

__all__ = ["CHOICE", "TOOL"]

_NULLABLE_STRING = nullable(STRING)
_OBJECT = map_of(ANY)
_CALLERS = nullable(list_of(enum_of("direct", "programmatic")))
_TITLE = {"name": STRING, "description": STRING}
_CONNECTION = {"project_connection_id": STRING}

_FUNCTION = {
    "allowed_callers": _CALLERS,
    "defer_loading": BOOLEAN,
    "description": _NULLABLE_STRING,
    "output_schema": nullable(_OBJECT),
    "parameters": nullable(_OBJECT),
    "strict": nullable(BOOLEAN),
}
_CUSTOM = {
    "allowed_callers": _CALLERS,
    "defer_loading": BOOLEAN,
    "description": STRING,
    "format": tagged(
        "type", {"text": object_of(), "grammar": object_of({"syntax": enum_of("lark", "regex"), "definition": STRING})}
    ),
}
_NETWORK = tagged("type", {"disabled": object_of(), "allowlist": object_of({"allowed_domains": list_of(STRING)})})
_CONTAINER = {
    "file_ids": list_of(STRING),
    "memory_limit": nullable(enum_of("1g", "4g", "16g", "64g")),
    "network_policy": _NETWORK,
}
_SKILL = tagged(
    "type",
    {
        "skill_reference": object_of({"skill_id": STRING}, version=STRING),
        "inline": object_of(
            {
                **_TITLE,
                "source": object_of(
                    {"type": enum_of("base64"), "media_type": enum_of("application/zip"), "data": STRING}
                ),
            }
        ),
    },
)
_SHELL = tagged(
    "type",
    {
        "container_auto": object_of(**_CONTAINER, skills=list_of(_SKILL)),
        "container_reference": object_of({"container_id": STRING}),
        "local": object_of(skills=list_of(object_of({**_TITLE, "path": STRING}))),
    },
)
_COMPARISON_FILTER = object_of(
    {
        "type": enum_of("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"),
        "key": STRING,
        "value": any_of(STRING, NUMBER, BOOLEAN, list_of(any_of(STRING, NUMBER))),
    }
)
_FILTERS = any_of(
    _COMPARISON_FILTER,
    object_of({"type": enum_of("and", "or"), "filters": list_of(any_of(_COMPARISON_FILTER, _OBJECT))}),
)
_RANKING = object_of(
    hybrid_search=object_of({"embedding_weight": NUMBER, "text_weight": NUMBER}),
    ranker=enum_of("auto", "default-2024-11-15"),
    score_threshold=NUMBER,
)
_TOOL_FILTER = object_of(read_only=BOOLEAN, tool_names=list_of(STRING))
_SIZE = enum_of("low", "medium", "high")
_LOCATION = object_of(
    {"type": enum_of("approximate")}, **dict.fromkeys(("city", "country", "region", "timezone"), _NULLABLE_STRING)
)
_MEMORY = object_of(
    {"memory_store_name": STRING, "scope": STRING},
    **_TITLE,
    search_options=object_of(max_memories=INTEGER),
    update_delay=INTEGER,
)

_CONNECTIONS = object_of(**_TITLE, project_connections=list_of(object_of(_CONNECTION, **_TITLE)))
_BING = {"count": INTEGER, "freshness": STRING, "market": STRING, "set_lang": STRING, **_TITLE}
_INDEX = object_of(
    **_TITLE,
    **_CONNECTION,
    **dict.fromkeys(("filter", "index_asset_id", "index_name"), STRING),
    query_type=enum_of("simple", "semantic", "vector", "vector_simple_hybrid", "vector_semantic_hybrid"),
    top_k=INTEGER,
)
_QUEUE = object_of(
    {
        "type": enum_of("storage_queue"),
        "storage_queue": object_of({"queue_service_endpoint": STRING, "queue_name": STRING}),
    }
)
_DECLARED = object_of({"name": STRING, "parameters": _OBJECT}, description=STRING)
_OPENAPI = object_of(
    {
        "name": STRING,
        "spec": _OBJECT,
        "auth": tagged(
            "type",
            {
                "anonymous": object_of(),
                "managed_identity": object_of({"security_scheme": object_of({"audience": STRING})}),
                "project_connection": object_of({"security_scheme": object_of(_CONNECTION)}),
            },
        ),
    },
    default_params=list_of(STRING),
    description=STRING,
    functions=list_of(_DECLARED),
)
_IMAGE = object_of(
    **_TITLE,
    action=enum_of("generate", "edit", "auto"),
    background=enum_of("transparent", "opaque", "auto"),
    input_fidelity=nullable(enum_of("high", "low")),
    input_image_mask=object_of(file_id=STRING, image_url=STRING),
    model=STRING,
    moderation=enum_of("auto", "low"),
    output_compression=INTEGER,
    output_format=enum_of("png", "webp", "jpeg"),
    partial_images=INTEGER,
    quality=enum_of("low", "medium", "high", "auto"),
    size=STRING,
)
_CONNECTORS = ("dropbox", "gmail", "googlecalendar", "googledrive", "microsoftteams", "outlookcalendar")
_MCP = object_of(
    {"server_label": STRING},
    **_CONNECTION,
    allowed_callers=_CALLERS,
    allowed_tools=any_of(list_of(STRING), _TOOL_FILTER),
    authorization=STRING,
    connector_id=enum_of(*(f"connector_{name}" for name in (*_CONNECTORS, "outlookemail", "sharepoint"))),
    defer_loading=BOOLEAN,
    headers=nullable(map_of(STRING)),
    require_approval=any_of(object_of(always=_TOOL_FILTER, never=_TOOL_FILTER), enum_of("always", "never")),
    **dict.fromkeys(("server_description", "server_url", "tunnel_id"), STRING),
)
_WEB_SEARCH = object_of(
    **_TITLE,
    custom_search_configuration=object_of({**_CONNECTION, "instance_name": STRING}, **_TITLE),
    external_web_access=BOOLEAN,
    filters=nullable(object_of(allowed_domains=nullable(list_of(STRING)))),
    search_context_size=_SIZE,
    user_location=nullable(_LOCATION),
)


def _tool_with_settings(name: str, settings: Spec) -> Spec:
    """Returns the spec of a tool of the service with its settings under its own name."""
    return object_of({name: settings}, **_TITLE)


TOOL = tagged(
    "type",
    {
        "function": object_of({"name": STRING}, **_FUNCTION),
        "custom": object_of({"name": STRING}, **_CUSTOM),
        "namespace": object_of(
            {
                "name": STRING,
                "description": STRING,
                "tools": list_of(
                    any_of(
                        object_of({"name": STRING, "type": enum_of("function")}, **_FUNCTION),
                        object_of({"name": STRING, "type": enum_of("custom")}, **_CUSTOM),
                    )
                ),
            }
        ),
        "apply_patch": object_of(allowed_callers=_CALLERS),
        "code_interpreter": object_of(
            **_TITLE,
            allowed_callers=_CALLERS,
            container=any_of(STRING, object_of({"type": enum_of("auto")}, **_CONTAINER)),
        ),
        "computer": object_of(),
        "computer_use_preview": object_of(
            {
                "environment": enum_of("windows", "mac", "linux", "ubuntu", "browser"),
                "display_width": INTEGER,
                "display_height": INTEGER,
            }
        ),
        "file_search": object_of(
            {"vector_store_ids": list_of(STRING)},
            **_TITLE,
            filters=nullable(_FILTERS),
            max_num_results=INTEGER,
            ranking_options=_RANKING,
        ),
        "image_generation": _IMAGE,
        "local_shell": object_of(**_TITLE),
        "mcp": _MCP,
        "programmatic_tool_calling": object_of(),
        "shell": object_of(**_TITLE, allowed_callers=_CALLERS, environment=nullable(_SHELL)),
        "tool_search": object_of(
            description=_NULLABLE_STRING, execution=enum_of("server", "client"), parameters=nullable(_OBJECT)
        ),
        "web_search": _WEB_SEARCH,
        "web_search_preview": object_of(
            search_content_types=list_of(enum_of("text", "image")),
            search_context_size=_SIZE,
            user_location=nullable(_LOCATION),
        ),
        "memory_search_preview": _MEMORY,
        "a2a_preview": object_of(**_TITLE, **_CONNECTION, agent_card_path=STRING, base_url=STRING),
        "azure_ai_search": _tool_with_settings("azure_ai_search", object_of({"indexes": list_of(_INDEX)}, **_TITLE)),
        "azure_function": object_of(
            {"azure_function": object_of({"function": _DECLARED, "input_binding": _QUEUE, "output_binding": _QUEUE})}
        ),
        "bing_custom_search_preview": _tool_with_settings(
            "bing_custom_search_preview",
            object_of(
                {"search_configurations": list_of(object_of({**_CONNECTION, "instance_name": STRING}, **_BING))},
                **_TITLE,
            ),
        ),
        "bing_grounding": _tool_with_settings(
            "bing_grounding", object_of({"search_configurations": list_of(object_of(_CONNECTION, **_BING))}, **_TITLE)
        ),
        "browser_automation_preview": _tool_with_settings(
            "browser_automation_preview", object_of({"connection": object_of(_CONNECTION, **_TITLE)}, **_TITLE)
        ),
        "capture_structured_outputs": object_of(
            {"outputs": object_of({**_TITLE, "schema": _OBJECT, "strict": nullable(BOOLEAN)})}
        ),
        "fabric_dataagent_preview": _tool_with_settings("fabric_dataagent_preview", _CONNECTIONS),
        "openapi": object_of({"openapi": _OPENAPI}),
        "sharepoint_grounding_preview": _tool_with_settings("sharepoint_grounding_preview", _CONNECTIONS),
        "work_iq_preview": object_of({"work_iq_preview": object_of(_CONNECTION)}),
    },
)

_CHOICE_BY_TYPE_ONLY = (
    *("apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview", "file_search"),
    *("image_generation", "programmatic_tool_calling", "shell"),
    *("web_search_preview", "web_search_preview_2025_03_11"),
)
CHOICE = any_of(
    enum_of("none", "auto", "required"),
    tagged(
        "type",
        {
            **dict.fromkeys(_CHOICE_BY_TYPE_ONLY, object_of()),
            **dict.fromkeys(("function", "custom"), object_of({"name": STRING})),
            "allowed_tools": object_of({"mode": enum_of("auto", "required"), "tools": list_of(_OBJECT)}),
            "mcp": object_of({"server_label": STRING}, name=_NULLABLE_STRING),
        },
    ),
)
