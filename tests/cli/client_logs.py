"""Sessions as clients record them, in the shapes of their own files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from tests.bodies import Body
from tests.bodies.anthropic import call


class ClaudeCode:
    """Entries of Claude Code, each a child of the previous one unless `below` is given."""

    def __init__(self) -> None:
        self.lines: list[Body] = []
        self._numbers = count(1)
        self.last: str | None = None

    def entry(self, type: str, below: str | None = "last", **fields: Any) -> str:
        uuid = f"u{next(self._numbers)}"
        parent = self.last if below == "last" else below
        self.lines.append(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/work",
                "sessionId": "s",
                "version": "2.1.63",
                "type": type,
                "uuid": uuid,
                "timestamp": "2026-03-01T22:38:47.557Z",
                **fields,
            }
        )
        self.last = uuid
        return uuid

    def user(self, content: Any, below: str | None = "last", **fields: Any) -> str:
        return self.entry("user", below, message={"role": "user", "content": content}, **fields)

    def reply(self, id: str, *blocks: Body, below: str | None = "last", **fields: Any) -> str:
        message = {"model": "claude-opus-4-6", "id": id, "type": "message", "role": "assistant", "content": [*blocks]}
        return self.entry("assistant", below, requestId="req_1", message=message, **fields)

    def result(self, call: str, text: str, below: str | None = "last") -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": text}
        return self.user([block], below, toolUseResult={"type": "text", "file": {"content": "the client's own"}})

    def other(self, **fields: Any) -> None:
        self.lines.append(fields)


def use(id: str, **arguments: Any) -> Body:
    return call(id, name="Read", input=arguments)


class Codex:
    """Lines of a rollout."""

    def __init__(self, **meta: Any) -> None:
        self.lines: list[Body] = []
        self.line("session_meta", id="s", cwd="/work", cli_version="0.159.0", source="cli", **meta)

    def line(self, kind: str, /, **payload: Any) -> None:
        self.lines.append({"timestamp": "2026-10-03T17:49:32.000Z", "type": kind, "payload": payload})

    def user(self, content_text: str) -> None:
        self.line("response_item", type="message", role="user", content=[{"type": "input_text", "text": content_text}])
        self.line("event_msg", type="user_message", message=content_text, kind="plain")

    def answer(self, content_text: str) -> None:
        self.line("event_msg", type="agent_message", message=content_text)
        self.line(
            "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": content_text}]
        )

    def call(self, id: str, output: str) -> None:
        self.line("response_item", type="function_call", name="shell", arguments='{"command":["ls"]}', call_id=id)
        self.line("response_item", type="function_call_output", call_id=id, output=output)


class Contents:
    """Lines of Gemini CLI or Qwen Code, whose messages are contents of the Gemini API."""

    def __init__(self, client: str) -> None:
        self._client = client
        facts = {"sessionId": "s", "projectHash": "0", "startTime": "2026-10-03T17:49:32.000Z", "kind": "main"}
        self.lines: list[Body] = [facts] if client == "gemini" else []

    def line(self, **fields: Any) -> None:
        number = len(self.lines)
        if self._client == "gemini":
            ids: Body = {"id": f"m{number}"}
        else:
            parent = self.lines[-1]["uuid"] if self.lines else None
            uuid = f"00000000-0000-4000-8000-{number:012x}"
            session = "0a1b2c3d-0000-4000-8000-000000000001"
            ids = {
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": session,
                "cwd": "/home/me/project",
                "version": "0.24.4",
            }
        self.lines.append({**ids, "timestamp": "2026-10-03T17:49:32.000Z", **fields})

    def content(self, role: str, *parts: Body) -> None:
        if self._client == "gemini":
            self.line(type="user" if role == "user" else "gemini", content=[*parts])
            return
        kind = "tool_result" if any("functionResponse" in part for part in parts) else "user"
        self.line(type="assistant" if role == "model" else kind, message={"role": role, "parts": [*parts]})

    def user(self, text: str) -> None:
        self.content("user", {"text": text})

    def answer(self, text: str) -> None:
        self.content("model", {"text": text})

    def call(self, *calls: tuple[str, str]) -> None:
        """Add a reply with calls of the shell, by their ids and commands."""
        name = "run_shell_command"
        functions = [{"id": id, "name": name, "args": {"command": command}} for id, command in calls]
        self.content("model", *({"functionCall": function} for function in functions))

    def result(self, id: str, output: str) -> None:
        response = {"id": id, "name": "run_shell_command", "response": {"output": output}}
        self.content("user", {"functionResponse": response})

    def compact(self, *contents: Body) -> None:
        """Add a compaction to these contents, as the client records it."""
        if self._client == "gemini":
            kinds = {"user": "user", "model": "gemini"}
            messages = [
                {"id": f"c{number}", "type": kinds[content["role"]], "content": content["parts"]}
                for number, content in enumerate(contents)
            ]
            self.lines.append({"$set": {"messages": messages}})
        else:
            payload = {"compressedHistory": [*contents], "info": {"newTokenCount": 1}}
            self.line(type="system", subtype="chat_compression", systemPayload=payload)


class Pi:
    """Entries of pi, each a child of the previous one."""

    def __init__(self) -> None:
        self.lines: list[Body] = [
            {"type": "session", "version": 3, "id": "s", "timestamp": "2026-10-03T17:49:32.000Z", "cwd": "/work"}
        ]

    def entry(self, kind: str, **fields: Any) -> None:
        parent = self.lines[-1]["id"] if len(self.lines) > 1 else None
        head = {"type": kind, "id": f"e{len(self.lines)}", "parentId": parent, "timestamp": "2026-10-03T17:49:32.000Z"}
        self.lines.append({**head, **fields})

    def message(self, role: str, content: Any, **fields: Any) -> None:
        self.entry("message", message={"role": role, "content": content, **fields, "timestamp": 1791049772000})

    def user(self, text: str) -> None:
        self.message("user", [{"type": "text", "text": text}])

    def reply(self, *blocks: Body, **fields: Any) -> None:
        facts = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-6", "stopReason": "stop"}
        self.message("assistant", [*blocks], **{**facts, **fields})

    def call(self, *calls: tuple[str, str]) -> None:
        self.reply(*({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": it}} for id, it in calls))

    def result(self, call: str, text: str) -> None:
        content = [{"type": "text", "text": text}]
        self.message("toolResult", content, toolCallId=call, toolName="bash", isError=False)

    def answer(self, text: str) -> None:
        self.reply({"type": "text", "text": text})

    def compact(self, summary: str) -> None:
        self.entry("compaction", summary=summary, firstKeptEntryId=f"e{len(self.lines)}", tokensBefore=1)


class Opencode:
    """A session of opencode, as it exports one."""

    def __init__(self) -> None:
        self.messages: list[Body] = []
        self.info: Body = {}
        self._names = 0

    @property
    def lines(self) -> list[Body]:
        """The one value of a session."""
        head = {"id": "ses_s", "slug": "slug", "projectID": "global", "directory": "/work", "title": "Task"}
        times = {"created": 1791049772000, "updated": 1791049772000}
        return [{"info": {**head, "version": "1.18.33", "time": times, **self.info}, "messages": self.messages}]

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}_{self._names:024d}"

    def _message(self, info: Body, parts: Sequence[Body | str]) -> str:
        names = {"sessionID": "ses_s", "messageID": self._name("msg")}
        at = 1791049772000 + self._names
        times = {"created": at, **({"completed": at} if info["role"] == "assistant" else {})}
        bodies = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        head = {"id": names["messageID"], "sessionID": "ses_s", "time": times, **info}
        self.messages.append({"info": head, "parts": [{"id": self._name("prt"), **names, **part} for part in bodies]})
        return names["messageID"]

    def user(self, *parts: Body | str) -> str:
        """Add a prompt; return its id."""
        model = {"providerID": "anthropic", "modelID": "claude-opus-4-6"}
        return self._message({"role": "user", "agent": "build", "model": model}, parts)

    def reply(self, *parts: Body | str, **info: Any) -> str:
        """Add a reply to the last prompt; return its id."""
        parent = next(each["info"]["id"] for each in reversed(self.messages) if each["info"]["role"] == "user")
        model = {"providerID": "anthropic", "modelID": "claude-opus-4-6", "mode": "build", "agent": "build"}
        tokens = {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        facts = {"path": {"cwd": "/work", "root": "/work"}, "cost": 0, "tokens": tokens, "finish": "stop"}
        head = {"role": "assistant", "parentID": parent, **model, **facts, **info}
        return self._message(head, [{"type": "step-start"}, *parts])

    def call(self, id: str, command: str, status: str = "completed", **state: Any) -> Body:
        """Return the part of a call of `bash`."""
        times = {"start": 1791049772000, **({"end": 1791049772001} if status in ("completed", "error") else {})}
        values = {"status": status, "input": {"command": command}, "time": times, **state}
        if status == "completed":
            values = {"title": command, "metadata": {}, **values}
        return {"type": "tool", "tool": "bash", "callID": id, "state": values}
