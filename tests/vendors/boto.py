"""Amazon's client (botocore, which boto3 wraps) in a tool loop."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import botocore.session
from botocore.config import Config

from tests.vendors import loops


def connect(url: str, *, secret: str = "nothing", tries: int = 1) -> Any:
    return botocore.session.get_session().create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="nobody",
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": tries, "mode": "standard"}),
    )


def tools() -> list[Any]:
    return [
        {"toolSpec": {"name": name, "description": schema.__doc__, "inputSchema": {"json": schema.model_json_schema()}}}
        for name, schema in loops.SCHEMAS.items()
    ]


def collect_blocks(events: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Content blocks, put together as examples of boto3 do it."""
    block: dict[str, Any] = {}
    for event in events:
        if "contentBlockStart" in event:
            block = {"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            if "text" in delta:
                block["text"] = block.get("text", "") + delta["text"]
            elif "toolUse" in delta:
                block["toolUse"]["input"] += delta["toolUse"]["input"]
            else:
                thought = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {"text": ""})
                for key, piece in delta["reasoningContent"].items():
                    thought[key] = thought.get(key, "") + piece
        elif "contentBlockStop" in event:
            if "toolUse" in block:
                block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
            yield block
            block = {}


def collect_usage(events: Iterable[Any]) -> Any:
    return next(event["metadata"]["usage"] for event in events if "metadata" in event)


def run_tool(use: Any) -> dict[str, Any]:
    text = loops.TOOLS[use["name"]](**use["input"])
    return {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": text}]}}
