"""The coding clients by name: those whose sessions segue reads and writes, and those that it starts on a gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path

from segue import entry_points
from segue.errors import unknown_name_error
from segue.sessions import files
from segue.sessions.claude import ClaudeCode
from segue.sessions.client import Client
from segue.sessions.codex import Codex
from segue.sessions.gemini import GeminiCli
from segue.sessions.launch import MODEL, PROVIDER, Launch, LaunchContext, Program, overlay, write_json
from segue.sessions.opencode import Opencode
from segue.sessions.pi import Pi
from segue.sessions.qwen import QwenCode
from segue.sessions.segue_client import SegueStore


class Copilot(Program):
    name = "copilot"
    program = "copilot"
    package = "@github/copilot"

    def launch(self, context: LaunchContext) -> Launch:
        return Launch(
            variables={
                "COPILOT_PROVIDER_BASE_URL": f"{context.url}/v1",
                "COPILOT_PROVIDER_TYPE": "openai",
                "COPILOT_PROVIDER_WIRE_API": "completions",
                "COPILOT_PROVIDER_API_KEY": context.key,
                "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(context.context),
                "COPILOT_MODEL": MODEL,
            },
            # With these of the user, the client would not use the key, or another form of the requests.
            removed=(
                "COPILOT_PROVIDER_BEARER_TOKEN",
                "COPILOT_PROVIDER_API_KEY_COMMAND",
                "COPILOT_PROVIDER_HEADERS",
                "COPILOT_PROVIDER_MODEL_ID",
                "COPILOT_PROVIDER_TRANSPORT",
                "COPILOT_PROVIDER_WIRE_MODEL",
            ),
        )


class Cline(Program):
    name = "cline"
    program = "cline"
    package = "cline"

    def launch(self, context: LaunchContext) -> Launch:
        name = "openai-compatible"
        own = {"provider": name, "apiKey": context.key, "model": MODEL, "baseUrl": f"{context.url}/v1"}
        # Without a date, the client ignores the file.
        entry = {"settings": own, "updatedAt": "2000-01-01T00:00:00.000Z"}
        settings = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: entry}}
        return Launch(
            ("-P", name, "-m", MODEL),
            {
                "CLINE_PROVIDER_SETTINGS_PATH": str(write_json(context.folder / "providers.json", settings)),
                # Its daemon would keep the settings of the first gateway that it was started with.
                "CLINE_SESSION_BACKEND_MODE": "local",
            },
        )


class Continue(Program):
    name = "continue"
    program = "cn"
    package = "@continuedev/cli"

    def launch(self, context: LaunchContext) -> Launch:
        model = {
            "name": context.model,
            "provider": "openai",
            "model": MODEL,
            "apiBase": f"{context.url}/v1",
            "apiKey": context.key,
            "roles": ["chat", "edit", "apply"],
            "capabilities": ["tool_use", "image_input"],
            "defaultCompletionOptions": {"contextLength": context.context},
        }
        # JSON is YAML, too.
        settings = {"name": PROVIDER, "version": "1.0.0", "schema": "v1", "models": [model]}
        return Launch(("--config", str(write_json(context.folder / "config.yaml", settings))))


class Llm(Program):
    name = "llm"
    program = "llm"
    package = "llm"
    installer = "pip install"

    def launch(self, context: LaunchContext) -> Launch:
        name, models, default = "LLM_USER_PATH", "extra-openai-models.yaml", "default_model.txt"
        given = context.environ.get(name)
        own = Path(given) if given else user_config_path("io.datasette.llm", appauthor=False, roaming=True)
        model = {
            "model_id": MODEL,
            "model_name": MODEL,
            "api_base": f"{context.url}/v1",
            "api_key_name": PROVIDER,
            "supports_tools": True,
            "supports_schema": True,
            "vision": True,
        }
        keys = {**files.read_object(own / "keys.json"), PROVIDER: context.key}
        overlay(own, context.folder, {"keys.json": keys}, ["logs.db"], (models, default))
        (context.folder / default).write_text(MODEL)
        try:
            users = (own / models).read_text()
        except (OSError, UnicodeDecodeError):
            users = ""
        # The file is a list, to which a line adds an entry.
        (context.folder / models).write_text(f"{users.rstrip()}\n- {json.dumps(model)}\n")
        return Launch(variables={name: str(context.folder)}, folders=(own,))


_INSTALLED = (entry_points.load(entry, Client) for entry in entry_points.find("segue.clients").values())
CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        # In this order a file is recognised, and the clients are listed.
        ClaudeCode(),
        Codex(),
        GeminiCli(),
        QwenCode(),
        Opencode(),
        Pi(),
        SegueStore(),
        *_INSTALLED,
    )
}

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (*CLIENTS.values(), Copilot(), Cline(), Continue(), Llm())
    if isinstance(program, Program)
}
"""The clients that `segue with` starts."""


def find_client(name: str, argument: str) -> Client:
    """Return a client by its name; `InputError` for others."""
    try:
        return CLIENTS[name]
    except KeyError:
        raise unknown_name_error("client", name, CLIENTS, path=argument) from None
