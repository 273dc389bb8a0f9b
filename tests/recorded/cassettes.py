"""Reads the cassettes of a checkout of pydantic-ai: what was sent to a provider, and what it answered."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from msgspec import Struct

from segue.wire.base import Wire
from segue.wire.registry import SERVERS, WIRES

Body = dict[str, Any]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Exchange(Struct, frozen=True):
    """One request with the answer. `model` is set where the URL has it; an answer is a `reply` or a `stream`."""

    name: str
    wire: Wire
    model: str | None
    body: Body
    status: int
    reply: Body | None
    stream: bytes | None

    @property
    def named_body(self) -> Body:
        """The body with the model of the URL in the field that segue has for it."""
        return self.body if self.model is None else {**self.body, self.wire.model_key: self.model}

    @property
    def named_model(self) -> str | None:
        return self.named_body.get(self.wire.model_key)


def read_exchanges(checkout: Path, only: str = "") -> Iterator[Exchange]:
    """Yield all exchanges with a model in the order of their cassettes; `only` is a part of their names."""
    for folder, _, names in sorted(os.walk(checkout)):
        for name in sorted(names):
            if "cassettes" not in Path(folder).parts or not name.endswith(".yaml"):
                continue
            path = Path(folder, name)
            title = str(path.relative_to(checkout).with_suffix(""))
            if only in title:
                yield from _read_cassette(path, title)


def _read_cassette(path: Path, title: str) -> Iterator[Exchange]:
    interactions = yaml.load(path.read_bytes(), Loader=_LOADER).get("interactions", ())
    for number, interaction in enumerate(interactions):
        # Other kinds of cassettes hold messages of a web socket.
        request, response = interaction.get("request"), interaction.get("response")
        if request is None or request["method"].upper() != "POST":
            continue
        wire, model = _find_wire(request["uri"])
        body = _read_json(request)
        if wire is None or body is None:
            continue
        reply = _read_json(response)
        yield Exchange(
            f"{title}#{number}",
            wire,
            model,
            body,
            response["status"]["code"],
            reply,
            _read_bytes(response) if reply is None else None,
        )


def _find_wire(uri: str) -> tuple[Wire | None, str | None]:
    """Return the registry's row for an address, and the model in the address."""
    parts = urlsplit(uri)
    host = "ollama" if parts.port == 11434 else parts.hostname or ""
    rows: list[Wire] = []
    model = None
    for wire in (*WIRES.values(), *SERVERS.values()):
        for path in (wire.path, wire.stream_path or wire.path):
            end = re.escape(path.partition("?")[0].rpartition("/v1beta")[2]).replace(r"\{model\}", "([^/:]+)")
            if (match := re.search(end + "$", parts.path)) is not None:
                rows.append(wire)
                model = unquote(match[1]) if match.groups() else None
    # Azure serves OpenAI's own API too.
    maker = "openai" if host.endswith(".openai.azure.com") else host
    own = [row for row in rows if re.split("-", row.profile or row.name)[0] in maker and row.kind != "wire"]
    return next(iter([*own, *rows]), None), model


def _read_json(part: dict[str, Any]) -> Body | None:
    body = part.get("parsed_body")
    if body is None:
        try:
            body = json.loads(_read_bytes(part))
        except ValueError:
            return None
    return body if isinstance(body, dict) else None


def _read_bytes(part: dict[str, Any]) -> bytes:
    body = part.get("body") or b""
    body = body.get("string") or b"" if isinstance(body, dict) else body
    return body if isinstance(body, bytes) else body.encode()
