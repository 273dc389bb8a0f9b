"""How each coding client is pointed at a gateway: by variables and flags, so that the user's settings stay as they are.

Where a client has no such means, a temporary folder has a file in place of one of the user's, and links to all others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from segue import private_files

KEY_VARIABLE = "SEGUE_CLIENT_KEY"
_PROVIDER = "segue"


class Launch(Struct, frozen=True):
    """How a client is started: more arguments before the user's, variables to set, and variables to remove.

    `folders` are those of the user that must exist before the start.
    """

    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    removed: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()


class SetupContext(Struct, frozen=True):
    """The gateway, the key of this client, the model's name, a temporary folder, and the user's variables."""

    url: str
    key: str
    model: str
    folder: Path
    environ: Mapping[str, str]


class ClientSetup(Struct, frozen=True):
    """A coding client: its program, how it is installed, and how it is started.

    `whole_calls`: the client keeps a call of a broken stream, so it gets calls only when they are complete.
    """

    name: str
    program: str
    package: str
    prepare: Callable[[SetupContext], Launch]
    whole_calls: bool = False


def _prepare_claude(context: SetupContext) -> Launch:
    return Launch(
        variables={
            "ANTHROPIC_BASE_URL": context.url,
            "ANTHROPIC_AUTH_TOKEN": context.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        # With a key of the user, the client would not use the token.
        removed=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    )


def _prepare_codex(context: SetupContext) -> Launch:
    settings = {
        "model_provider": _PROVIDER,
        f"model_providers.{_PROVIDER}.name": _PROVIDER,
        f"model_providers.{_PROVIDER}.base_url": f"{context.url}/v1",
        f"model_providers.{_PROVIDER}.env_key": KEY_VARIABLE,
        f"model_providers.{_PROVIDER}.wire_api": "responses",
    }
    arguments = [part for key, value in settings.items() for part in ("-c", f"{key}={json.dumps(value)}")]
    return Launch(tuple(arguments), {KEY_VARIABLE: context.key})


def _prepare_gemini(context: SetupContext) -> Launch:
    # The settings of the system take precedence over those of the user.
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    file = _write_json(context.folder / "settings.json", settings)
    return Launch(
        variables={
            "GOOGLE_GEMINI_BASE_URL": context.url,
            "GEMINI_API_KEY": context.key,
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(file),
        },
        removed=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
    )


def _prepare_qwen(context: SetupContext) -> Launch:
    # The client guesses from a model's name whether it accepts pictures, and does not send them to names it never saw.
    settings = {"model": {"generationConfig": {"modalities": {"image": True}}}}
    return Launch(
        ("--auth-type", "openai", "-m", context.model),
        {
            "OPENAI_BASE_URL": f"{context.url}/v1",
            "OPENAI_API_KEY": context.key,
            "OPENAI_MODEL": context.model,
            "QWEN_CODE_SYSTEM_SETTINGS_PATH": str(_write_json(context.folder / "settings.json", settings)),
        },
    )


def _prepare_opencode(context: SetupContext) -> Launch:
    model = {
        "name": context.model,
        "tool_call": True,
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": 200_000, "output": 32_000},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER,
        "options": {"baseURL": f"{context.url}/v1", "apiKey": context.key},
        "models": {context.model: model},
    }
    content = {"provider": {_PROVIDER: provider}, "model": f"{_PROVIDER}/{context.model}"}
    return Launch(variables={"OPENCODE_CONFIG_CONTENT": json.dumps(content)})


def _prepare_pi(context: SetupContext) -> Launch:
    name = "PI_CODING_AGENT_DIR"
    own = Path(context.environ.get(name) or Path.home() / ".pi" / "agent")
    model = {
        "id": context.model,
        "name": context.model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": 200_000,
        "maxTokens": 32_000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": context.url, "apiKey": context.key, "api": "anthropic-messages", "models": [model]}
    users = _read_json(own / "models.json")
    providers = {**users.get("providers", {}), _PROVIDER: provider}
    # New sessions are new folders and files in this one.
    sessions = own / "sessions"
    overlay(own, context.folder, {"models.json": {**users, "providers": providers}}, [sessions.name])
    arguments = ("--provider", _PROVIDER, "--model", context.model)
    return Launch(arguments, {name: str(context.folder)}, folders=(sessions,))


CLIENTS: Mapping[str, ClientSetup] = {
    setup.name: setup
    for setup in (
        ClientSetup("claude", "claude", "@anthropic-ai/claude-code", _prepare_claude),
        ClientSetup("codex", "codex", "@openai/codex", _prepare_codex),
        ClientSetup("gemini", "gemini", "@google/gemini-cli", _prepare_gemini),
        ClientSetup("qwen", "qwen", "@qwen-code/qwen-code", _prepare_qwen),
        ClientSetup("opencode", "opencode", "opencode-ai", _prepare_opencode, whole_calls=True),
        ClientSetup("pi", "pi", "@earendil-works/pi-coding-agent", _prepare_pi),
    )
}


def overlay(own: Path, folder: Path, files: Mapping[str, Any], linked: Iterable[str] = ()) -> None:
    """Fill a folder with links to the entries of another, except for these files.

    Entries in `linked` are linked even if they do not exist yet.
    """
    existing = (entry.name for entry in own.iterdir()) if own.is_dir() else ()
    for name in dict.fromkeys((*existing, *linked)):
        if name not in files:
            (folder / name).symlink_to(own / name)
    for name, content in files.items():
        _write_json(folder / name, content)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: Any = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _write_json(path: Path, content: Any) -> Path:
    private_files.replace(path, json.dumps(content).encode(), is_durable=False)
    return path
