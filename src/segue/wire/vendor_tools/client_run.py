"""Client-run tools: defined by an API, run by its client. Cross-API they are functions with the documented input.

In the Responses API they have their own item types for calls; a call in a reply is converted back to such an item if
its arguments match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from segue.canonical.request import Tool
from segue.wire.json_values import JsonObject, list_or_empty, object_or_none, string_or_none

_ANTHROPIC, _OPENAI, _GEMINI = "anthropic", "openai-responses", "gemini"
# Settings of a declaration that the model needs.
_SETTINGS = (
    *("display_width_px", "display_height_px", "display_number", "display_width", "display_height", "environment"),
    "max_characters",
)
_KNOWN_KEYS = frozenset(
    {*_SETTINGS, "name", "description", "parameters", "execution"}
    | {"excludedPredefinedFunctions", "excluded_predefined_functions"}
)


class ClientTool(Struct, frozen=True):
    """A client-run tool type of one API, and the function tool that replaces it on other APIs."""

    api: str
    type_pattern: str
    function_name: str | None
    """None for the name in the declaration."""
    description: str
    build_schema: Callable[[JsonObject], JsonObject]
    """Builds the parameters from the declaration."""
    item_type: str | None = None
    """The type of its calls in `api`."""
    build_item_members: Callable[[JsonObject], JsonObject | None] = lambda _arguments: None
    """Builds the fields of such a call from arguments."""
    is_excluded: Callable[[JsonObject], bool] = lambda _members: False

    def to_function(self, tool: Tool, kind: str, members: JsonObject) -> Tool:
        """Return the function tool for a declaration; its settings are appended to the description."""
        description = string_or_none(members.get("description")) or self.description
        settings = [
            f"{key}: {members[key]}"
            for key in _SETTINGS
            if isinstance(members.get(key), str | int) and self.api != _GEMINI
        ]
        schema = self.build_schema({**members, "type": kind})
        if settings:
            description = f"{description} ({', '.join(settings)})"
        return Tool(self.function_name or tool.name, description, schema)


# -------------------------------------------------------------------------------------------------------------- schemas

_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
_POINT = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}


def _one_of(*values: str) -> JsonObject:
    return {"type": "string", "enum": list(values)}


def _object(required: str, **properties: Mapping[str, Any]) -> Callable[[JsonObject], JsonObject]:
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required.split()
    return lambda _members: schema


def _computer_schema(members: JsonObject) -> JsonObject:
    """Return the parameters of OpenAI's computer tool: one action, or in the newer type a list of them."""
    action = {
        "type": "object",
        "properties": {
            "type": _one_of(
                *("click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait")
            ),
            "button": _one_of("left", "right", "wheel", "back", "forward"),
            "x": _NUMBER,
            "y": _NUMBER,
            "scroll_x": _NUMBER,
            "scroll_y": _NUMBER,
            "keys": _TEXTS,
            "text": _TEXT,
            "path": {
                "type": "array",
                "items": {"type": "object", "properties": {"x": _NUMBER, "y": _NUMBER}, "required": ["x", "y"]},
            },
        },
        "required": ["type"],
    }
    if members.get("type") == "computer":
        return {
            "type": "object",
            "properties": {"actions": {"type": "array", "items": action}},
            "required": ["actions"],
        }
    return {"type": "object", "properties": {"action": action}, "required": ["action"]}


_EDITOR_FIELDS = {
    "path": _TEXT,
    "view_range": {"type": "array", "items": _NUMBER},
    "file_text": _TEXT,
    "old_str": _TEXT,
    "new_str": _TEXT,
    "insert_line": _NUMBER,
    "insert_text": _TEXT,
}
_COMPUTER_ACTIONS = (
    *("key", "hold_key", "type", "cursor_position", "mouse_move", "left_mouse_down", "left_mouse_up", "left_click"),
    *("left_click_drag", "right_click", "middle_click", "double_click", "triple_click", "scroll", "wait"),
    *("screenshot", "zoom"),
)

# ------------------------------------------------------------------------------------------------------- and back again


def _under_key(key: str, *required: str, **defaults: Any) -> Callable[[JsonObject], JsonObject | None]:
    """Return a function that puts the arguments under a key of the item, if they have the required fields."""

    def members(arguments: JsonObject) -> JsonObject | None:
        return {key: {**defaults, **arguments}} if all(name in arguments for name in required) else None

    return members


def _computer_item(arguments: JsonObject) -> JsonObject | None:
    actions = {key: arguments[key] for key in ("action", "actions") if key in arguments}
    return {**actions, "pending_safety_checks": []} if actions else None


def is_in_container(members: JsonObject) -> bool:
    """Return whether this call or declaration of a shell is for one that the provider runs."""
    return (object_or_none(members.get("environment")) or {}).get("type") in ("container_auto", "container_reference")


# ----------------------------------------------------------------------------------------------------------- the table

_X_Y = {"x": _NUMBER, "y": _NUMBER}
_DIRECTION = _one_of("up", "down", "left", "right")

CLIENT_TOOLS: tuple[ClientTool, ...] = (
    ClientTool(
        _ANTHROPIC,
        r"bash_\d+",
        None,
        "Runs a command in a bash session that stays open, or restarts the session.",
        _object("", command=_TEXT, restart=_FLAG),
    ),
    ClientTool(
        _ANTHROPIC,
        r"text_editor_\d+",
        None,
        "Views, creates and edits files.",
        _object(
            "command path", command=_one_of("view", "create", "str_replace", "insert", "undo_edit"), **_EDITOR_FIELDS
        ),
    ),
    ClientTool(
        _ANTHROPIC,
        r"memory_\d+",
        None,
        "Reads and writes files under /memories, which outlast the conversation.",
        _object(
            "command",
            command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
            **_EDITOR_FIELDS,
            old_path=_TEXT,
            new_path=_TEXT,
        ),
    ),
    ClientTool(
        _ANTHROPIC,
        r"computer_\d+",
        None,
        "Uses a computer by mouse and keyboard, and sees it by screenshots.",
        _object(
            "action",
            action=_one_of(*_COMPUTER_ACTIONS),
            coordinate=_POINT,
            start_coordinate=_POINT,
            region={"type": "array", "items": _NUMBER, "minItems": 4, "maxItems": 4},
            text=_TEXT,
            duration={"type": "number"},
            scroll_direction=_DIRECTION,
            scroll_amount=_NUMBER,
        ),
    ),
    ClientTool(
        _OPENAI,
        "local_shell",
        "local_shell",
        "Runs a command on the user's machine.",
        _object(
            "type command",
            type=_one_of("exec"),
            command=_TEXTS,
            env={"type": "object", "additionalProperties": _TEXT},
            timeout_ms=_NUMBER,
            user=_TEXT,
            working_directory=_TEXT,
        ),
        "local_shell_call",
        _under_key("action", "command", type="exec", env={}),
    ),
    ClientTool(
        _OPENAI,
        "shell",
        "shell",
        "Runs commands in a shell, one after the other.",
        _object("commands", commands=_TEXTS, timeout_ms=_NUMBER, max_output_length=_NUMBER),
        "shell_call",
        _under_key("action", "commands"),
        is_excluded=is_in_container,
    ),
    ClientTool(
        _OPENAI,
        "apply_patch",
        "apply_patch",
        "Creates, updates or deletes a file; what changes in it is given as a V4A diff.",
        _object("type path", type=_one_of("create_file", "update_file", "delete_file"), path=_TEXT, diff=_TEXT),
        "apply_patch_call",
        _under_key("operation", "type", "path"),
    ),
    ClientTool(
        _OPENAI,
        "computer|computer_use_preview",
        "computer",
        "Uses a computer by mouse and keyboard, and sees it by screenshots.",
        _computer_schema,
        "computer_call",
        _computer_item,
    ),
    ClientTool(
        _OPENAI,
        "tool_search",
        "tool_search",
        "Searches for tools that are not at hand yet.",
        lambda members: object_or_none(members.get("parameters")) or {"type": "object", "properties": {}},
        "tool_search_call",
        lambda arguments: {"arguments": arguments, "execution": "client"},
        is_excluded=lambda members: members.get("execution") != "client",
    ),
    *(
        ClientTool(_GEMINI, "computerUse", name, description, _object(" ".join(required), **properties))
        for name, description, required, properties in (
            ("open_web_browser", "Opens the browser.", (), {}),
            ("wait_5_seconds", "Waits for five seconds.", (), {}),
            ("go_back", "Goes back to the page before.", (), {}),
            ("go_forward", "Goes forward to the next page.", (), {}),
            ("search", "Opens the start page of a search engine.", (), {}),
            ("navigate", "Goes to an address.", ("url",), {"url": _TEXT}),
            ("click_at", "Clicks; the screen is 1000 wide and high.", ("x", "y"), _X_Y),
            ("hover_at", "Moves the mouse; the screen is 1000 wide and high.", ("x", "y"), _X_Y),
            (
                "type_text_at",
                "Clicks and types; the screen is 1000 wide and high.",
                ("x", "y", "text"),
                {**_X_Y, "text": _TEXT, "press_enter": _FLAG, "clear_before_typing": _FLAG},
            ),
            ("key_combination", "Presses keys: control+a.", ("keys",), {"keys": _TEXT}),
            ("scroll_document", "Scrolls the page.", ("direction",), {"direction": _DIRECTION}),
            (
                "scroll_at",
                "Scrolls at a place; the screen is 1000 wide and high.",
                ("x", "y", "direction"),
                {**_X_Y, "direction": _DIRECTION, "magnitude": _NUMBER},
            ),
            (
                "drag_and_drop",
                "Drags from a place to another; the screen is 1000 wide and high.",
                ("x", "y", "destination_x", "destination_y"),
                {**_X_Y, "destination_x": _NUMBER, "destination_y": _NUMBER},
            ),
        )
    ),
)


def find_dropped_keys(members: JsonObject) -> list[str]:
    """Return the keys of a declaration that its functions do not have, and that have a value."""
    return sorted(key for key, value in members.items() if value and key not in _KNOWN_KEYS)


def find_client_tools(api: str, kind: str, members: JsonObject) -> list[ClientTool]:
    """Return the functions that a declaration of this type includes."""
    names: Any = members.get("excludedPredefinedFunctions") or members.get("excluded_predefined_functions")
    excluded = list_or_empty(names)
    return [
        row
        for row in CLIENT_TOOLS
        if row.api == api
        and re.fullmatch(row.type_pattern, kind)
        and not row.is_excluded(members)
        and (row.function_name is None or row.function_name not in excluded)
    ]
