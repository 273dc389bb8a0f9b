"""Azure Foundry's request types (AZF-03, AZF-08): items, content parts, tools and the body."""

from __future__ import annotations

from segue.wire.openai_responses.foundry_schema import ObjectType, parse_types

__all__ = ["AGENT", "BODY", "ITEMS", "PARTS", "TOOLS"]

_STATUSES = "=in_progress,completed,incomplete"
_DETAILS = "=low,high,auto,original"
_CALLERS = "allowed_callers?:[=direct,programmatic]|0"
_NAME_AND_DESCRIPTION = "name? description?"
_CONTAINER_FIELDS = "file_ids?:[s] memory_limit?:=1g,4g,16g,64g|0 network_policy?:@network"

# -------------------------------------------------------------------------------------------------------------- tools

_TOOL_TYPES = parse_types(
    {
        "grammar": {"text": "", "grammar": "syntax:=lark,regex definition"},
        "network": {"disabled": "", "allowlist": "allowed_domains:[s]"},
        "archive": "type:=base64 media_type:=application/zip data",
        "skill": {"skill_reference": "skill_id version?", "inline": "name description source:@archive"},
        "local_skill": "name description path",
        "container": f"type:=auto {_CONTAINER_FIELDS}",
        "machine": {
            "container_auto": f"{_CONTAINER_FIELDS} skills?:[@skill]",
            "container_reference": "container_id",
            "local": "skills?:[@local_skill]",
        },
        "comparison": "type:=eq,ne,gt,gte,lt,lte,in,nin key value:snb|[sn]",
        "compound": "type:=and,or filters:[o]",
        "hybrid": "embedding_weight:n text_weight:n",
        "ranking": "hybrid_search?:@hybrid ranker?:=auto,default-2024-11-15 score_threshold?:n",
        "chosen_tools": "read_only?:b tool_names?:[s]",
        "approval_rules": "always?:@chosen_tools never?:@chosen_tools",
        "location": "type:=approximate city?:s0 country?:s0 region?:s0 timezone?:s0",
        "domains": "allowed_domains?:[s]|0",
        "mask": "file_id? image_url?",
        "own_search": f"project_connection_id instance_name {_NAME_AND_DESCRIPTION}",
        "most_memories": "max_memories?:i",
        "connection": f"project_connection_id {_NAME_AND_DESCRIPTION}",
        "connection_ref": "project_connection_id",
        "connections": f"{_NAME_AND_DESCRIPTION} project_connections?:[@connection]",
        "index": f"{_NAME_AND_DESCRIPTION} project_connection_id? filter? index_asset_id? index_name? top_k?:i "
        "query_type?:=simple,semantic,vector,vector_simple_hybrid,vector_semantic_hybrid",
        "indexes": f"indexes:[@index] {_NAME_AND_DESCRIPTION}",
        "queue_place": "queue_service_endpoint queue_name",
        "queue": "type:=storage_queue storage_queue:@queue_place",
        "declared": "name parameters:o description?",
        "bound_function": "function:@declared input_binding:@queue output_binding:@queue",
        "bing": f"project_connection_id count?:i freshness? market? set_lang? {_NAME_AND_DESCRIPTION}",
        "own_bing": "project_connection_id instance_name count?:i freshness? market? set_lang? "
        f"{_NAME_AND_DESCRIPTION}",
        "bings": f"search_configurations:[@bing] {_NAME_AND_DESCRIPTION}",
        "own_bings": f"search_configurations:[@own_bing] {_NAME_AND_DESCRIPTION}",
        "browser": f"connection:@connection {_NAME_AND_DESCRIPTION}",
        "output_schema": "name description schema:o strict:b0",
        "audience": "audience",
        "auth": {
            "anonymous": "",
            "managed_identity": "security_scheme:@audience",
            "project_connection": "security_scheme:@connection_ref",
        },
        "openapi": "name spec:o auth:@auth default_params?:[s] description? functions?:[@declared]",
    }
)
_FUNCTION = f"name description?:s0 parameters?:o0 strict?:b0 output_schema?:o0 {_CALLERS} defer_loading?:b"
_CUSTOM = f"name description? format?:@grammar {_CALLERS} defer_loading?:b"
_MEMORY = f"memory_store_name scope {_NAME_AND_DESCRIPTION} search_options?:@most_memories update_delay?:i"
_CONNECTORS = ",".join(
    f"connector_{name}"
    for name in (
        *("dropbox", "gmail", "googlecalendar", "googledrive", "microsoftteams", "outlookcalendar", "outlookemail"),
        "sharepoint",
    )
)
_NAMESPACE_TYPES = parse_types({"namespace_tool": {"function": _FUNCTION, "custom": _CUSTOM}}, _TOOL_TYPES)
TOOLS: dict[str, ObjectType] = parse_types(
    {
        "function": _FUNCTION,
        "custom": _CUSTOM,
        "namespace": "name description tools:[@namespace_tool]",
        "a2a_preview": f"{_NAME_AND_DESCRIPTION} project_connection_id? agent_card_path? base_url?",
        "apply_patch": _CALLERS,
        "azure_ai_search": f"azure_ai_search:@indexes {_NAME_AND_DESCRIPTION}",
        "azure_function": "azure_function:@bound_function",
        "bing_custom_search_preview": f"bing_custom_search_preview:@own_bings {_NAME_AND_DESCRIPTION}",
        "bing_grounding": f"bing_grounding:@bings {_NAME_AND_DESCRIPTION}",
        "browser_automation_preview": f"browser_automation_preview:@browser {_NAME_AND_DESCRIPTION}",
        "capture_structured_outputs": "outputs:@output_schema",
        "code_interpreter": f"{_NAME_AND_DESCRIPTION} {_CALLERS} container?:s|@container",
        "computer": "",
        "computer_use_preview": "environment:=windows,mac,linux,ubuntu,browser display_width:i display_height:i",
        "fabric_dataagent_preview": f"fabric_dataagent_preview:@connections {_NAME_AND_DESCRIPTION}",
        "file_search": f"vector_store_ids:[s] {_NAME_AND_DESCRIPTION} "
        f"filters?:@comparison|@compound|0 max_num_results?:i "
        "ranking_options?:@ranking",
        "image_generation": f"{_NAME_AND_DESCRIPTION} action?:=generate,edit,auto background?:=transparent,opaque,auto "
        "input_fidelity?:=high,low|0 input_image_mask?:@mask model? moderation?:=auto,low output_compression?:i "
        "output_format?:=png,webp,jpeg partial_images?:i quality?:=low,medium,high,auto size?",
        "local_shell": _NAME_AND_DESCRIPTION,
        "mcp": f"server_label project_connection_id? {_CALLERS} allowed_tools?:[s]|@chosen_tools authorization? "
        f"connector_id?:={_CONNECTORS} defer_loading?:b headers?:<s>|0 require_approval?:@approval_rules|=always,never "
        "server_description? server_url? tunnel_id?",
        "memory_search_preview": _MEMORY,
        "openapi": "openapi:@openapi",
        "programmatic_tool_calling": "",
        "sharepoint_grounding_preview": f"sharepoint_grounding_preview:@connections {_NAME_AND_DESCRIPTION}",
        "shell": f"{_NAME_AND_DESCRIPTION} {_CALLERS} environment?:@machine|0",
        "tool_search": "description?:s0 execution?:=server,client parameters?:o0",
        "web_search": f"{_NAME_AND_DESCRIPTION} custom_search_configuration?:@own_search external_web_access?:b "
        "filters?:@domains|0 search_context_size?:=low,medium,high user_location?:@location|0",
        "web_search_preview": "search_content_types?:[=text,image] search_context_size?:=low,medium,high "
        "user_location?:@location|0",
        "work_iq_preview": "work_iq_preview:@connection_ref",
    },
    _TOOL_TYPES | _NAMESPACE_TYPES,
)

# -------------------------------------------------------------------------------------------------------------- parts

_TOKEN = "token logprob:n bytes:[i]"
_PART_TYPES = parse_types(
    {
        "mark": "mode:=explicit",
        "annotation": {
            "file_citation": "file_id index:i filename",
            "file_path": "file_id index:i",
            "url_citation": "url title start_index:i end_index:i",
            "container_file_citation": "container_id file_id filename start_index:i end_index:i",
        },
        "token": _TOKEN,
        "tokens": f"{_TOKEN} top_logprobs:[@token]",
    }
)
_CACHE_BREAKPOINT = "prompt_cache_breakpoint?:@mark"
_ANNOTATED = "[?@annotation] logprobs?:[@tokens]"
_FILE = f"detail?:=auto,low,high file_data? file_id?:s0 file_url? filename? {_CACHE_BREAKPOINT}"
PARTS: dict[str, ObjectType] = parse_types(
    {
        "computer_screenshot": f"detail:{_DETAILS} file_id:s0 image_url:s0 {_CACHE_BREAKPOINT}",
        "input_file": _FILE,
        "input_image": f"detail?:{_DETAILS}|0 file_id?:s0 image_url?:s0 {_CACHE_BREAKPOINT}",
        "input_text": f"text {_CACHE_BREAKPOINT}",
        "output_text": f"text annotations:{_ANNOTATED}",
        "reasoning_text": "text",
        "refusal": "refusal",
        "summary_text": "text",
        "text": "text",
    },
    _PART_TYPES,
)

# AZF-04 covers missing annotations.
_OUTPUT_CONTENT = parse_types(
    {"part": {"output_text": f"text annotations?:{_ANNOTATED}", "refusal": "refusal"}}, _PART_TYPES
)

# -------------------------------------------------------------------------------------------------------------- items

_COORDINATES = "x:i y:i"
_KEYS_FIELD = "keys?:[s]|0"
_ITEM_TYPES = parse_types(
    {
        "caller": {"direct": "", "program": "caller_id"},
        "point": _COORDINATES,
        "skill": "name description path",
        "outcome": {"exit": "exit_code:i", "timeout": ""},
        "source": "type:=url url",
        "memory": "memory_id updated_at:i scope content kind:=user_profile,chat_summary",
        "mcp_tool": "name input_schema:o annotations?:o0 description?:s0",
        "summary": "type:=summary_text text",
        "reasoning_part": "type:=reasoning_text text",
        "action": {
            "click": f"button:=left,right,wheel,back,forward {_COORDINATES} {_KEYS_FIELD}",
            "double_click": f"{_COORDINATES} keys:[s]|0",
            "drag": f"path:[@point] {_KEYS_FIELD}",
            "keypress": "keys:[s]",
            "move": f"{_COORDINATES} {_KEYS_FIELD}",
            "screenshot": "",
            "scroll": f"{_COORDINATES} scroll_x:i scroll_y:i {_KEYS_FIELD}",
            "type": "text",
            "wait": "",
        },
        "check": "id code?:s0 message?:s0",
        "operation": {"create_file": "path diff", "update_file": "path diff", "delete_file": "path"},
        "exec": "type:=exec command:[s] env:<s> timeout_ms?:i0 user?:s0 working_directory?:s0",
        "commands": "commands:[s] max_output_length?:i0 timeout_ms?:i0",
        "environment": {"local": "skills?:[@skill]", "container_reference": "container_id"},
        "chunk": "stdout stderr outcome:@outcome",
        "search_action": {
            "search": "query? queries?:[s] sources!:[@source]",
            "open_page": "url?:s0",
            "find_in_page": "url pattern",
        },
        "file_result": "attributes?:<snb>|0 file_id? filename? score?:n text?",
        "memory_result": "memory_item:@memory",
        "code_output": {"logs": "logs", "image": "url"},
        "screen": "type:=computer_screenshot file_id? image_url?",
        "mcp_error": {
            "http_error": "code:i message",
            "protocol_error": "code:i message",
            "tool_execution_error": "message",
        },
    }
)
# AZF-03: a null status is rejected, even where the schema of the type allows it.
_STATUS_FIELD = f"status?:{_STATUSES}"
_CALLER_FIELD = "caller?:@caller|0"
_CALL_FIELDS = f"call_id id?:s0 {_CALLER_FIELD}"
_SEARCH_STATUSES = "=in_progress,completed,incomplete,searching,failed"
ITEMS: dict[str, ObjectType] = parse_types(
    {
        "additional_tools": "role tools:[?@tool] id?:s0",
        "apply_patch_call": f"{_CALL_FIELDS} operation:@operation status:=in_progress,completed",
        "apply_patch_call_output": f"{_CALL_FIELDS} status:=completed,failed output?:s0",
        "code_interpreter_call": "id code:s0 container_id outputs:[@code_output]|0 "
        "status:=in_progress,completed,incomplete,interpreting,failed",
        "compaction": "encrypted_content id?:s0",
        "computer_call": f"id call_id pending_safety_checks:[@check] status:{_STATUSES} action!:@action "
        "actions!:[@action]",
        "computer_call_output": f"call_id output:@screen acknowledged_safety_checks!:[@check]|0 {_STATUS_FIELD} id?:s0",
        "custom_tool_call": f"call_id name input id? namespace? {_CALLER_FIELD} status?",
        "custom_tool_call_output": f"call_id output:sa id? {_CALLER_FIELD} status?",
        "file_search_call": f"id queries:[s] status:{_SEARCH_STATUSES} results!:[@file_result]|0",
        "function_call": f"call_id name arguments namespace? {_STATUS_FIELD} {_CALLER_FIELD} id?:s0",
        "function_call_output": f"output:sa call_id?:s0 {_CALLER_FIELD} name?:s0 namespace?:s0 {_STATUS_FIELD} id?:s0",
        "image_generation_call": "id result:s0 status:=in_progress,completed,generating,failed",
        "item_reference": "id",
        "local_shell_call": f"id call_id action:@exec status:{_STATUSES}",
        "local_shell_call_output": f"id output {_STATUS_FIELD}",
        "mcp_approval_request": "id arguments name server_label",
        "mcp_approval_response": "approval_request_id approve:b id?:s0 reason?:s0",
        "mcp_call": "id arguments name server_label approval_request_id?:s0 error!:o output!:s0 "
        "status?:=in_progress,completed,incomplete,calling,failed",
        "mcp_list_tools": "id server_label tools:[@mcp_tool] error!:@mcp_error",
        "memory_search_call": "results!:[@memory_result]|0 status? id?:x",
        "message": "role content:sa type? phase?:=commentary,final_answer|0 status?",
        "output_message": f"id role:=assistant content:[@part] status:{_STATUSES} phase?:=commentary,final_answer|0",
        "program": "id call_id code fingerprint",
        "program_output": "id call_id result status:=completed,incomplete",
        "reasoning": f"id summary:[@summary] content?:[@reasoning_part] encrypted_content?:s0 {_STATUS_FIELD}",
        "shell_call": f"{_CALL_FIELDS} action:@commands environment?:@environment|0 {_STATUS_FIELD}",
        "shell_call_output": f"{_CALL_FIELDS} output:[@chunk] max_output_length?:i0 {_STATUS_FIELD}",
        "tool_search_call": f"arguments:o call_id?:s0 execution?:=server,client id?:s0 {_STATUS_FIELD}",
        "tool_search_output": f"tools:[?@tool] call_id?:s0 execution?:=server,client id?:s0 {_STATUS_FIELD}",
        "web_search_call": f"id action:@search_action status:{_SEARCH_STATUSES}",
    },
    {**_ITEM_TYPES, "tool": ObjectType(by_type=TOOLS), **_OUTPUT_CONTENT},
)

# --------------------------------------------------------------------------------------------------------------- body

AGENT = parse_types({"agent": "name type? version?"})["agent"]
_SUMMARY_KINDS = "=auto,concise,detailed|0"
_TYPE_ONLY_CHOICES = (
    *("apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview", "file_search"),
    *("image_generation", "programmatic_tool_calling", "shell"),
    *("web_search_preview", "web_search_preview_2025_03_11"),
)
_BODY_TYPES = parse_types(
    {
        "mark": "mode:=explicit",
        "stored": "id",
        "compaction": "type compact_threshold?:i0",
        "moderation_mode": "mode:=score,block",
        "text_format": {"text": "", "json_object": "", "json_schema": "name schema:o description? strict?:b0"},
        "choice": {
            **dict.fromkeys(_TYPE_ONLY_CHOICES, ""),
            **dict.fromkeys(("function", "custom"), "name"),
            "allowed_tools": "mode:=auto,required tools:[o]",
            "mcp": "server_label name?:s0",
        },
        "variable": {
            "input_text": f"text {_CACHE_BREAKPOINT}",
            "input_image": f"detail:{_DETAILS} file_id?:s0 image_url?:s0 {_CACHE_BREAKPOINT}",
            "input_file": _FILE,
        },
        "cache_options": "mode?:=implicit,explicit ttl?:=30m",
        "reasoning_options": "context?:=auto,current_turn,all_turns|0 mode?:=standard,pro "
        f"effort?:=none,minimal,low,medium,high,xhigh,max|0 generate_summary?:{_SUMMARY_KINDS} "
        f"summary?:{_SUMMARY_KINDS}",
        "stream_options": "include_obfuscation?:b",
        "moderation_policy": "input?:@moderation_mode|0 output?:@moderation_mode|0",
        "text_options": "format?:@text_format verbosity?:=low,medium,high|0",
        "prompt": "id variables?:<s|@variable>|0 version?:s0",
        "moderation": "model policy?:@moderation_policy|0",
    }
)
_INCLUDED = ",".join(
    (
        *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
        *("message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content"),
        *("computer_call_output.output.image_url", "code_interpreter_call.outputs", "memory_search_call.results"),
    )
)
BODY = parse_types(
    {
        "body": "agent_reference?:o agent_session_id? background?:b0 context_management?:[@compaction]|0 "
        f"conversation?:s0|@stored include?:[?={_INCLUDED}]|0 input?:sa instructions?:s0 max_output_tokens?:i0 "
        "max_tool_calls?:i0 metadata?:<s>|0 model? moderation?:@moderation|0 parallel_tool_calls?:b0 "
        "previous_response_id?:s0 prompt?:@prompt prompt_cache_key?:s0 prompt_cache_options?:@cache_options "
        "prompt_cache_retention?:=in_memory,24h|0 reasoning?:@reasoning_options|0 safety_identifier?:s0 "
        "service_tier?:=auto,default,flex,scale,priority,fast,ultrafast|0 store?:b0 stream?:b0 "
        "stream_options?:@stream_options|0 structured_inputs?:o temperature?:n0 text?:@text_options "
        "tool_choice?:=none,auto,required|@choice tools?:a top_logprobs?:i0 top_p?:n0 truncation?:=auto,disabled|0 "
        "user?"
    },
    _BODY_TYPES,
)["body"]
