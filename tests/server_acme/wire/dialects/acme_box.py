"""The server profile `acme-box`: Chat Completions on a server that needs arguments in JSON."""

from __future__ import annotations

from segue.wire.openai_chat import make_server_wire

WIRE = make_server_wire("acme-box", {"arguments": "json", "empty_content": ""})
