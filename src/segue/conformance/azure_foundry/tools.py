"""Specs of the tools that Foundry accepts: those of Responses and those of the service itself (AZF-03)."""

from __future__ import annotations

from segue.conformance.form import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Form,
    chosen,
    either,
    entries,
    mapped,
    maybe,
    members,
    text,
)

__all__ = ["CHOICE", "TOOL"]

_NAME = maybe(TEXT)
_OBJECT = mapped(ANY)
_CALLERS = maybe(entries(text("direct", "programmatic")))
_TITLE = {"name": TEXT, "description": TEXT}
_CONNECTION = {"project_connection_id": TEXT}

_FUNCTION = {
    "allowed_callers": _CALLERS,
    "defer_loading": BOOLEAN,
    "description": _NAME,
    "output_schema": maybe(_OBJECT),
    "parameters": maybe(_OBJECT),
    "strict": maybe(BOOLEAN),
}
_CUSTOM = {
    "allowed_callers": _CALLERS,
    "defer_loading": BOOLEAN,
    "description": TEXT,
    "format": chosen(
        "type", {"text": members(), "grammar": members({"syntax": text("lark", "regex"), "definition": TEXT})}
    ),
}
_NETWORK = chosen("type", {"disabled": members(), "allowlist": members({"allowed_domains": entries(TEXT)})})
_CONTAINER = {
    "file_ids": entries(TEXT),
    "memory_limit": maybe(text("1g", "4g", "16g", "64g")),
    "network_policy": _NETWORK,
}
_SKILL = chosen(
    "type",
    {
        "skill_reference": members({"skill_id": TEXT}, version=TEXT),
        "inline": members(
            {
                **_TITLE,
                "source": members({"type": text("base64"), "media_type": text("application/zip"), "data": TEXT}),
            }
        ),
    },
)
_SHELL = chosen(
    "type",
    {
        "container_auto": members(**_CONTAINER, skills=entries(_SKILL)),
        "container_reference": members({"container_id": TEXT}),
        "local": members(skills=entries(members({**_TITLE, "path": TEXT}))),
    },
)
_COMPARED = members(
    {
        "type": text("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"),
        "key": TEXT,
        "value": either(TEXT, NUMBER, BOOLEAN, entries(either(TEXT, NUMBER))),
    }
)
_FILTERS = either(_COMPARED, members({"type": text("and", "or"), "filters": entries(either(_COMPARED, _OBJECT))}))
_RANKING = members(
    hybrid_search=members({"embedding_weight": NUMBER, "text_weight": NUMBER}),
    ranker=text("auto", "default-2024-11-15"),
    score_threshold=NUMBER,
)
_TOOL_FILTER = members(read_only=BOOLEAN, tool_names=entries(TEXT))
_SIZE = text("low", "medium", "high")
_LOCATION = members({"type": text("approximate")}, **dict.fromkeys(("city", "country", "region", "timezone"), _NAME))
_MEMORY = members(
    {"memory_store_name": TEXT, "scope": TEXT},
    **_TITLE,
    search_options=members(max_memories=INTEGER),
    update_delay=INTEGER,
)

_CONNECTIONS = members(**_TITLE, project_connections=entries(members(_CONNECTION, **_TITLE)))
_BING = {"count": INTEGER, "freshness": TEXT, "market": TEXT, "set_lang": TEXT, **_TITLE}
_INDEX = members(
    **_TITLE,
    **_CONNECTION,
    **dict.fromkeys(("filter", "index_asset_id", "index_name"), TEXT),
    query_type=text("simple", "semantic", "vector", "vector_simple_hybrid", "vector_semantic_hybrid"),
    top_k=INTEGER,
)
_QUEUE = members(
    {
        "type": text("storage_queue"),
        "storage_queue": members({"queue_service_endpoint": TEXT, "queue_name": TEXT}),
    }
)
_DECLARED = members({"name": TEXT, "parameters": _OBJECT}, description=TEXT)
_OPENAPI = members(
    {
        "name": TEXT,
        "spec": _OBJECT,
        "auth": chosen(
            "type",
            {
                "anonymous": members(),
                "managed_identity": members({"security_scheme": members({"audience": TEXT})}),
                "project_connection": members({"security_scheme": members(_CONNECTION)}),
            },
        ),
    },
    default_params=entries(TEXT),
    description=TEXT,
    functions=entries(_DECLARED),
)
_IMAGE = members(
    **_TITLE,
    action=text("generate", "edit", "auto"),
    background=text("transparent", "opaque", "auto"),
    input_fidelity=maybe(text("high", "low")),
    input_image_mask=members(file_id=TEXT, image_url=TEXT),
    model=TEXT,
    moderation=text("auto", "low"),
    output_compression=INTEGER,
    output_format=text("png", "webp", "jpeg"),
    partial_images=INTEGER,
    quality=text("low", "medium", "high", "auto"),
    size=TEXT,
)
_CONNECTORS = ("dropbox", "gmail", "googlecalendar", "googledrive", "microsoftteams", "outlookcalendar")
_MCP = members(
    {"server_label": TEXT},
    **_CONNECTION,
    allowed_callers=_CALLERS,
    allowed_tools=either(entries(TEXT), _TOOL_FILTER),
    authorization=TEXT,
    connector_id=text(*(f"connector_{name}" for name in (*_CONNECTORS, "outlookemail", "sharepoint"))),
    defer_loading=BOOLEAN,
    headers=maybe(mapped(TEXT)),
    require_approval=either(members(always=_TOOL_FILTER, never=_TOOL_FILTER), text("always", "never")),
    **dict.fromkeys(("server_description", "server_url", "tunnel_id"), TEXT),
)
_SEARCHED = members(
    **_TITLE,
    custom_search_configuration=members({**_CONNECTION, "instance_name": TEXT}, **_TITLE),
    external_web_access=BOOLEAN,
    filters=maybe(members(allowed_domains=maybe(entries(TEXT)))),
    search_context_size=_SIZE,
    user_location=maybe(_LOCATION),
)


def _configured(name: str, form: Form) -> Form:
    """Returns the spec of a tool of the service with its settings under its own name."""
    return members({name: form}, **_TITLE)


TOOL = chosen(
    "type",
    {
        "function": members({"name": TEXT}, **_FUNCTION),
        "custom": members({"name": TEXT}, **_CUSTOM),
        "namespace": members(
            {
                "name": TEXT,
                "description": TEXT,
                "tools": entries(
                    either(
                        members({"name": TEXT, "type": text("function")}, **_FUNCTION),
                        members({"name": TEXT, "type": text("custom")}, **_CUSTOM),
                    )
                ),
            }
        ),
        "apply_patch": members(allowed_callers=_CALLERS),
        "code_interpreter": members(
            **_TITLE, allowed_callers=_CALLERS, container=either(TEXT, members({"type": text("auto")}, **_CONTAINER))
        ),
        "computer": members(),
        "computer_use_preview": members(
            {
                "environment": text("windows", "mac", "linux", "ubuntu", "browser"),
                "display_width": INTEGER,
                "display_height": INTEGER,
            }
        ),
        "file_search": members(
            {"vector_store_ids": entries(TEXT)},
            **_TITLE,
            filters=maybe(_FILTERS),
            max_num_results=INTEGER,
            ranking_options=_RANKING,
        ),
        "image_generation": _IMAGE,
        "local_shell": members(**_TITLE),
        "mcp": _MCP,
        "programmatic_tool_calling": members(),
        "shell": members(**_TITLE, allowed_callers=_CALLERS, environment=maybe(_SHELL)),
        "tool_search": members(description=_NAME, execution=text("server", "client"), parameters=maybe(_OBJECT)),
        "web_search": _SEARCHED,
        "web_search_preview": members(
            search_content_types=entries(text("text", "image")),
            search_context_size=_SIZE,
            user_location=maybe(_LOCATION),
        ),
        "memory_search_preview": _MEMORY,
        "a2a_preview": members(**_TITLE, **_CONNECTION, agent_card_path=TEXT, base_url=TEXT),
        "azure_ai_search": _configured("azure_ai_search", members({"indexes": entries(_INDEX)}, **_TITLE)),
        "azure_function": members(
            {"azure_function": members({"function": _DECLARED, "input_binding": _QUEUE, "output_binding": _QUEUE})}
        ),
        "bing_custom_search_preview": _configured(
            "bing_custom_search_preview",
            members(
                {"search_configurations": entries(members({**_CONNECTION, "instance_name": TEXT}, **_BING))}, **_TITLE
            ),
        ),
        "bing_grounding": _configured(
            "bing_grounding", members({"search_configurations": entries(members(_CONNECTION, **_BING))}, **_TITLE)
        ),
        "browser_automation_preview": _configured(
            "browser_automation_preview", members({"connection": members(_CONNECTION, **_TITLE)}, **_TITLE)
        ),
        "capture_structured_outputs": members(
            {"outputs": members({**_TITLE, "schema": _OBJECT, "strict": maybe(BOOLEAN)})}
        ),
        "fabric_dataagent_preview": _configured("fabric_dataagent_preview", _CONNECTIONS),
        "openapi": members({"openapi": _OPENAPI}),
        "sharepoint_grounding_preview": _configured("sharepoint_grounding_preview", _CONNECTIONS),
        "work_iq_preview": members({"work_iq_preview": members(_CONNECTION)}),
    },
)

_ALONE = (
    *("apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview", "file_search"),
    *("image_generation", "programmatic_tool_calling", "shell"),
    *("web_search_preview", "web_search_preview_2025_03_11"),
)
CHOICE = either(
    text("none", "auto", "required"),
    chosen(
        "type",
        {
            **dict.fromkeys(_ALONE, members()),
            **dict.fromkeys(("function", "custom"), members({"name": TEXT})),
            "allowed_tools": members({"mode": text("auto", "required"), "tools": entries(_OBJECT)}),
            "mcp": members({"server_label": TEXT}, name=_NAME),
        },
    ),
)
