"""Reads sessions of Acme: a line with the facts of the session, then a line for each block, in the Anthropic API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.errors import InputError
from segue.sessions.any_provider import API
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts

KIND = "acme"


def is_head(value: Mapping[str, Any]) -> bool:
    return value.get("acme") == 1 and isinstance(value.get("id"), str)


def is_line(line: LogLine) -> bool:
    return is_head(line.value)


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    blocks = [line for line in lines if "block" in line.value]
    if not blocks:
        raise InputError("this session has no messages")
    head = lines[0].value
    messages = [{"role": line.value["role"], "content": [line.value["block"]]} for line in blocks]
    return ParsedLog(
        KIND,
        {"messages": messages},
        API,
        head.get("title"),
        [line.number for line in blocks],
        times=[line.timestamp for line in blocks],
        facts=SessionFacts(head["id"], head["cwd"]),
    )
