"""The server profile `acme-box`: Chat Completions on a server that needs arguments in JSON."""

from __future__ import annotations

from segue.wire.openai_chat.server import make_server

WIRE = make_server("acme-box", {"arguments": "json", "empty_content": ""})
