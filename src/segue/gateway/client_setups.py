"""How each coding client is pointed at a gateway: by variables and flags, so that the user's settings stay as they are.

Where a client has no such means, a temporary folder has a file in place of one of the user's, and links to all others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from platformdirs import user_config_path

from segue import private_files

KEY_VARIABLE = "SEGUE_CLIENT_KEY"
_PROVIDER = "segue"
# The model that clients are started with: a name without a provider, so that `-m` and `segue route` decide what it is.
MODEL = "segue"
# Sessions that `segue move` wrote where it knew no model name this one.
_MOVED_MODEL = "moved"
_CONTEXT = 200_000
_MAX_OUTPUT = 32_000


class Launch(Struct, frozen=True):
    """How a client is started: more arguments before the user's, variables to set, and variables to remove.

    `folders` are those of the user that must exist before the start.
    """

    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    removed: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()


class SetupContext(Struct, frozen=True):
    """The gateway, the key of this client, the model, a temporary folder, and the user's variables.

    `model` is the name that the client shows, `context` the model's size in tokens.
    """

    url: str
    key: str
    model: str
    folder: Path
    environ: Mapping[str, str]
    context: int = _CONTEXT


class ModelSetting(Struct, frozen=True):
    """Where a client keeps the model that its user chose last, and the variable that takes precedence over it.

    `list_files` returns the files of settings, first those with precedence, given the user's variables and the folder;
    `keys` lead to the name. `default` is the client's own default.
    """

    variable: str
    list_files: Callable[[Mapping[str, str], Path], Sequence[Path]]
    keys: tuple[str, ...]
    default: str

    def find(self, environ: Mapping[str, str], folder: Path) -> str | None:
        """Return the name that the client would use."""
        if environ.get(self.variable):
            return environ[self.variable]
        names = (self._read(path) for path in self.list_files(environ, folder))
        return next((name for name in names if name), None)

    def _read(self, path: Path) -> str | None:
        value: Any = _read_json(path)
        for key in self.keys:
            value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
        return value if isinstance(value, str) else None


class ClientSetup(Struct, frozen=True):
    """A coding client: its program, how it is installed, and how it is started.

    `buffer_tool_calls`: the client keeps a call of a broken stream, so it gets calls only when they are complete.
    `newer_flags` are flags that its older versions do not have. `model` is None where the flags and files of the start
    decide the model anyway.
    """

    name: str
    program: str
    package: str
    prepare: Callable[[SetupContext], Launch]
    buffer_tool_calls: bool = False
    newer_flags: tuple[str, ...] = ()
    model: ModelSetting | None = None
    installer: str = "npm install -g"

    def start(self, context: SetupContext, own_model: str | None) -> Launch:
        """Return how the client is started. `own_model` is the model of its own settings that may stay, if any."""
        launch = self.prepare(context)
        if self.model is None:
            return launch
        variables = {**launch.variables, self.model.variable: own_model or self.model.default}
        return msgspec.structs.replace(launch, variables=variables)


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
    settings: dict[str, str | int] = {
        "model_provider": _PROVIDER,
        "model_context_window": context.context,
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
    options = {"modalities": {"image": True}, "contextWindowSize": context.context}
    settings = {"model": {"generationConfig": options}}
    return Launch(
        ("--auth-type", "openai", "-m", MODEL),
        {
            "OPENAI_BASE_URL": f"{context.url}/v1",
            "OPENAI_API_KEY": context.key,
            "OPENAI_MODEL": MODEL,
            "QWEN_CODE_SYSTEM_SETTINGS_PATH": str(_write_json(context.folder / "settings.json", settings)),
        },
    )


def _prepare_opencode(context: SetupContext) -> Launch:
    model = {
        "name": context.model,
        "tool_call": True,
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": context.context, "output": _MAX_OUTPUT},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER,
        "options": {"baseURL": f"{context.url}/v1", "apiKey": context.key},
        "models": dict.fromkeys((MODEL, _MOVED_MODEL), model),
    }
    name = f"{_PROVIDER}/{MODEL}"
    # The model of an agent takes precedence over that of the session.
    agents = {agent: {"model": name} for agent in ("build", "plan")}
    content = {"provider": {_PROVIDER: provider}, "model": name, "agent": agents}
    return Launch(variables={"OPENCODE_CONFIG_CONTENT": json.dumps(content)})


def _prepare_pi(context: SetupContext) -> Launch:
    name = "PI_CODING_AGENT_DIR"
    own = Path(context.environ.get(name) or Path.home() / ".pi" / "agent")
    model = {
        "id": MODEL,
        "name": context.model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": context.context,
        "maxTokens": _MAX_OUTPUT,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": context.url, "apiKey": context.key, "api": "anthropic-messages", "models": [model]}
    users = _read_json(own / "models.json")
    providers = {**users.get("providers", {}), _PROVIDER: provider}
    # New sessions are new folders and files in this one.
    sessions = own / "sessions"
    overlay(own, context.folder, {"models.json": {**users, "providers": providers}}, [sessions.name])
    arguments = ("--provider", _PROVIDER, "--model", MODEL)
    return Launch(arguments, {name: str(context.folder)}, folders=(sessions,))


def _prepare_copilot(context: SetupContext) -> Launch:
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


def _prepare_cline(context: SetupContext) -> Launch:
    name = "openai-compatible"
    own = {"provider": name, "apiKey": context.key, "model": MODEL, "baseUrl": f"{context.url}/v1"}
    # Without a date, the client ignores the file.
    entry = {"settings": own, "updatedAt": "2000-01-01T00:00:00.000Z"}
    settings = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: entry}}
    return Launch(
        ("-P", name, "-m", MODEL),
        {
            "CLINE_PROVIDER_SETTINGS_PATH": str(_write_json(context.folder / "providers.json", settings)),
            # Its daemon would keep the settings of the first gateway that it was started with.
            "CLINE_SESSION_BACKEND_MODE": "local",
        },
    )


def _prepare_continue(context: SetupContext) -> Launch:
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
    settings = {"name": _PROVIDER, "version": "1.0.0", "schema": "v1", "models": [model]}
    return Launch(("--config", str(_write_json(context.folder / "config.yaml", settings))))


def _prepare_llm(context: SetupContext) -> Launch:
    name, models, default = "LLM_USER_PATH", "extra-openai-models.yaml", "default_model.txt"
    given = context.environ.get(name)
    own = Path(given) if given else user_config_path("io.datasette.llm", appauthor=False, roaming=True)
    model = {
        "model_id": MODEL,
        "model_name": MODEL,
        "api_base": f"{context.url}/v1",
        "api_key_name": _PROVIDER,
        "supports_tools": True,
        "supports_schema": True,
        "vision": True,
    }
    keys = {**_read_json(own / "keys.json"), _PROVIDER: context.key}
    overlay(own, context.folder, {"keys.json": keys}, ["logs.db"], (models, default))
    (context.folder / default).write_text(MODEL)
    try:
        users = (own / models).read_text()
    except (OSError, UnicodeDecodeError):
        users = ""
    # The file is a list, to which a line adds an entry.
    (context.folder / models).write_text(f"{users.rstrip()}\n- {json.dumps(model)}\n")
    return Launch(variables={name: str(context.folder)}, folders=(own,))


def _list_claude_settings(environ: Mapping[str, str], folder: Path) -> Sequence[Path]:
    own = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    project = folder / ".claude"
    return project / "settings.local.json", project / "settings.json", own / "settings.json"


def _list_gemini_settings(environ: Mapping[str, str], folder: Path) -> Sequence[Path]:
    homes = (folder, Path(environ.get("GEMINI_CLI_HOME") or Path.home()))
    return [home / ".gemini" / "settings.json" for home in homes]


# A session keeps its model, too: without the variable, Claude Code continues with it.
_CLAUDE_MODEL = ModelSetting("ANTHROPIC_MODEL", _list_claude_settings, ("model",), "opus")
_GEMINI_MODEL = ModelSetting("GEMINI_MODEL", _list_gemini_settings, ("model", "name"), "auto")

CLIENTS: Mapping[str, ClientSetup] = {
    setup.name: setup
    for setup in (
        ClientSetup("claude", "claude", "@anthropic-ai/claude-code", _prepare_claude, model=_CLAUDE_MODEL),
        ClientSetup("codex", "codex", "@openai/codex", _prepare_codex, newer_flags=("--no-daemon",)),
        ClientSetup("gemini", "gemini", "@google/gemini-cli", _prepare_gemini, model=_GEMINI_MODEL),
        ClientSetup("qwen", "qwen", "@qwen-code/qwen-code", _prepare_qwen),
        ClientSetup("opencode", "opencode", "opencode-ai", _prepare_opencode, buffer_tool_calls=True),
        ClientSetup("pi", "pi", "@earendil-works/pi-coding-agent", _prepare_pi),
        ClientSetup("copilot", "copilot", "@github/copilot", _prepare_copilot),
        ClientSetup("cline", "cline", "cline", _prepare_cline),
        ClientSetup("continue", "cn", "@continuedev/cli", _prepare_continue),
        ClientSetup("llm", "llm", "llm", _prepare_llm, installer="pip install"),
    )
}


def overlay(
    own: Path, folder: Path, files: Mapping[str, Any], linked: Iterable[str] = (), left_out: Iterable[str] = ()
) -> None:
    """Fill a folder with links to the entries of another, except for these files and those left out.

    Entries in `linked` are linked even if they do not exist yet.
    """
    existing = (entry.name for entry in own.iterdir()) if own.is_dir() else ()
    replaced = {*files, *left_out}
    for name in dict.fromkeys((*existing, *linked)):
        if name not in replaced:
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
