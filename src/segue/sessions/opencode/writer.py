"""Writes sessions of opencode in the form of `opencode export`, which `opencode import` adds to its database.

The client orders messages by their time and parts by their id. A result is in the part of its call, and is sent in the
order of the calls. All times are in the past, so that the next prompt is the newest message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from segue.canonical.ids import short_hash
from segue.canonical.json import encode_json
from segue.sessions.any_provider import objects_of
from segue.sessions.client import MARK_KEY, PARENT_KEY, SIGNED_COPY_KEY, NewSession, SessionItem
from segue.sessions.opencode.reader import ADDED, decode, find_model, select_kept
from segue.sessions.opencode.settings import UNKNOWN_MODEL, Model
from segue.sessions.values import object_of

_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_AGENT = "build"
VERSION = "1.18.33"
"""The version of the client that is written into sessions."""


def encode(draft: NewSession) -> bytes:
    """Return a new session."""
    at = draft.now // 1000
    metadata = {key: text for key, text in ((PARENT_KEY, draft.parent), (SIGNED_COPY_KEY, draft.signed_copy)) if text}
    model = (draft.provider, draft.model) if draft.provider and draft.model else UNKNOWN_MODEL
    provider, name = model
    info: dict[str, Any] = {
        "id": draft.id,
        "slug": f"moved-{short_hash(draft.id)[:8].lower()}",
        "projectID": "global",
        "directory": draft.cwd,
        "title": draft.title or "Moved session",
        **({"model": {"id": name, "providerID": provider}} if model != UNKNOWN_MODEL else {}),
        "version": VERSION,
        **({"metadata": metadata} if metadata else {}),
        "time": {"created": at, "updated": at},
    }
    return encode_json({"info": info, "messages": list(_Messages(draft, model, []))})


def encode_more(data: bytes, draft: NewSession) -> bytes:
    """Return the messages that continue a session, with its last model."""
    value = decode(data)
    before = objects_of(value.get("messages"))
    provider, name = find_model(before)
    own = (provider, name) if provider and name else UNKNOWN_MODEL
    return encode_json({"info": value["info"], "messages": list(_Messages(draft, own, before))})


def copy(data: bytes, draft: NewSession) -> bytes:
    """Return a session under another id, in the folder of the draft, with other ids of messages and parts.

    The client has one table of all messages.

    Messages that the user took back are left out: the client would remove all after them at the next prompt.
    """
    value = decode(data)
    names: dict[str, str] = {value["info"]["id"]: draft.id}
    info = {key: item for key, item in value["info"].items() if key != "revert"}
    info |= {"id": draft.id, "directory": draft.cwd}
    messages = select_kept(objects_of(value.get("messages")), object_of(value["info"].get("revert")))
    suffix = short_hash(draft.id)[:8].replace("-", "0").replace("_", "0")
    for message in messages:
        for item in (object_of(message.get("info")), *objects_of(message.get("parts"))):
            if isinstance(item.get("id"), str):
                names[item["id"]] = f"{item['id'][:16]}{len(names):06d}{suffix}"
    if draft.parent is not None:
        info["metadata"] = {**object_of(info.get("metadata")), PARENT_KEY: draft.parent}
    return encode_json({"info": info, "messages": _rename(messages, names)})


def _rename(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_rename(item, names) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _rename(item, names) for key, item in cast("dict[str, Any]", value).items()}
    return names.get(value, value) if isinstance(value, str) else value


class _Messages:
    """The messages of a draft, after those of a session."""

    def __init__(self, draft: NewSession, model: Model, before: list[dict[str, Any]]) -> None:
        self._draft = draft
        self._provider, self._model = model
        infos = [object_of(message.get("info")) for message in before]
        times = [object_of(info.get("time")).get("created") for info in infos]
        first = next((item.at for item in draft.items if item.at is not None), draft.now) // 1000 - len(draft.items)
        self._at = max((at for at in times if isinstance(at, int)), default=first)
        prompts = [info["id"] for info in infos if info.get("role") == "user"]
        self._prompt = prompts[-1] if prompts else f"msg{draft.id.removeprefix('ses')}"
        self._count = 0
        self._results = {
            block["tool_use_id"]: block
            for item in draft.items
            for block in item.value["content"]
            if block["type"] == "tool_result"
        }
        self._order = {id: number for number, id in enumerate(self._results)}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        reply: list[SessionItem] = []
        for item in self._draft.items:
            is_reply = item.value["role"] == "assistant"
            if reply and (not is_reply or item.synthetic):
                yield self._reply(reply)
                reply = []
            if is_reply:
                reply.append(item)
            elif item.value["content"][0]["type"] != "tool_result":
                yield self._user(item)
        if reply:
            yield self._reply(reply)

    def _id(self, prefix: str) -> str:
        self._count += 1
        value = (self._at * 4096 + self._count) & (1 << 48) - 1
        suffix = short_hash(f"{self._draft.id}:{self._draft.now}")[:8].replace("-", "0").replace("_", "0")
        return f"{prefix}_{value:012x}{self._count:06d}{suffix}"

    def _info(self, item: SessionItem) -> dict[str, Any]:
        self._at = max(self._at + 1, (item.at or 0) // 1000)
        return {"id": self._id("msg"), "sessionID": self._draft.id}

    def _part(self, info: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {"id": self._id("prt"), "sessionID": self._draft.id, "messageID": info["id"], **fields}

    def _user(self, item: SessionItem) -> dict[str, Any]:
        info = self._info(item)
        self._prompt = info["id"]
        model = {"providerID": self._provider, "modelID": self._model}
        info |= {"role": "user", "time": {"created": self._at}, "agent": _AGENT, "model": model}
        block = item.value["content"][0]
        content = {"type": "text", "text": block["text"]} if block["type"] == "text" else _file(block)
        return {"info": info, "parts": [self._part(info, **content)]}

    def _reply(self, items: list[SessionItem]) -> dict[str, Any]:
        info = self._info(items[0])
        info |= {
            "role": "assistant",
            "time": {"created": self._at, "completed": self._at},
            "parentID": self._prompt,
            "modelID": self._model,
            "providerID": self._provider,
            "mode": _AGENT,
            "agent": _AGENT,
            "path": {"cwd": self._draft.cwd, "root": self._draft.cwd},
            "cost": 0,
            "tokens": _TOKENS,
            "finish": "tool-calls" if items[-1].value["content"][0]["type"] == "tool_use" else "stop",
        }
        parts = [self._part(info, type="step-start")]
        places = [self._order.get(item.value["content"][0].get("id"), 0) for item in items]
        in_order = places == sorted(places)
        for item in items:
            block = item.value["content"][0]
            if block["type"] == "tool_use":
                parts.append(self._part(info, **self._tool(info, block, in_order=in_order)))
            else:
                added = {"metadata": {MARK_KEY: ADDED}} if item.synthetic else {}
                parts.append(self._part(info, type="text", text=block["text"], **added))
        finish = {"type": "step-finish", "reason": info["finish"], "cost": 0, "tokens": _TOKENS}
        return {"info": info, "parts": [*parts, self._part(info, **finish)]}

    def _tool(self, info: dict[str, Any], block: dict[str, Any], *, in_order: bool) -> dict[str, Any]:
        result = self._results.get(block["id"], {})
        content = objects_of(result.get("content"))
        text = "\n".join(part["text"] for part in content if part["type"] == "text")
        mark = {} if in_order else {MARK_KEY: {"place": self._order.get(block["id"], 0)}}
        files = [self._part(info, **_file(part)) for part in content if part["type"] != "text"]
        state: dict[str, Any] = {"input": block["input"], "time": {"start": self._at, "end": self._at}}
        # The result of a failed call has no place for files.
        if result.get("is_error") and not files:
            state |= {"status": "error", "error": text, **({"metadata": mark} if mark else {})}
        else:
            metadata = {**display_call(block["name"], block["input"], text), **mark}
            state |= {"status": "completed", "output": text, "title": block["name"], "metadata": metadata}
            state |= {"attachments": files} if files else {}
        return {"type": "tool", "tool": block["name"], "callID": block["id"], "state": state}


def _file(block: dict[str, Any]) -> dict[str, Any]:
    source, name = block["source"], block.get("title")
    url = f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "file", "mime": source["media_type"], "url": url, **({"filename": name} if name else {})}


_MAX_OUTPUT = 30_000


# -------------------------------------------------------------------------------------- what the screen shows of a call


def display_call(name: str, arguments: dict[str, Any], output: str) -> dict[str, Any]:
    """Return the metadata of a call, by its tool."""
    match name:
        case "bash":
            return {"output": output[:_MAX_OUTPUT]}
        case "edit" if _are_texts(arguments, "filePath", "oldString", "newString"):
            return {"diff": _render_diff(arguments["filePath"], arguments["oldString"], arguments["newString"])}
        case "write":
            return {"diagnostics": {}}
        case "todowrite" if isinstance(arguments.get("todos"), list):
            return {"todos": arguments["todos"]}
        case _:
            return {}


def _are_texts(arguments: dict[str, Any], *names: str) -> bool:
    return all(isinstance(arguments.get(name), str) for name in names)


def _render_diff(path: str, old: str, new: str) -> str:
    """Return a diff that replaces all lines. Where they are in the file is not known."""
    removed, added = old.split("\n"), new.split("\n")
    head = [f"--- {path}", f"+++ {path}", f"@@ -1,{len(removed)} +1,{len(added)} @@"]
    return "\n".join([*head, *(f"-{line}" for line in removed), *(f"+{line}" for line in added), ""])
