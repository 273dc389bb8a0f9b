"""How clients are pointed at a gateway. `make clients` runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from segue.sessions.launch import LaunchContext
from segue.sessions.opencode.settings import UNKNOWN_MODEL
from segue.sessions.registry import PROGRAMS


def variables_of(client: str, folder: Path) -> dict[str, str]:
    files = folder / "files"
    files.mkdir()
    environ = {"PI_CODING_AGENT_DIR": str(folder / "pi")}
    launch = PROGRAMS[client].launch(LaunchContext("http://127.0.0.1:1", "key", "some/unknown-model", files, environ))
    return dict(launch.variables)


def test_codex_knows_the_size_of_the_context(tmp_path: Path) -> None:
    context = LaunchContext("http://127.0.0.1:1", "key", "some/model", tmp_path, {}, context=65_536)
    assert "model_context_window=65536" in PROGRAMS["codex"].launch(context).arguments


def test_opencode_sends_pictures_to_any_model(tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(variables_of("opencode", tmp_path)["OPENCODE_CONFIG_CONTENT"])
    model = content["provider"]["segue"]["models"]["segue"]
    assert model["attachment"] is True
    assert "image" in model["modalities"]["input"]


def test_qwen_sends_pictures_to_any_model(tmp_path: Path) -> None:
    settings = json.loads(Path(variables_of("qwen", tmp_path)["QWEN_CODE_SYSTEM_SETTINGS_PATH"]).read_text())
    assert settings["model"]["generationConfig"]["modalities"]["image"] is True


def test_pi_sends_pictures_to_any_model(tmp_path: Path) -> None:
    folder = Path(variables_of("pi", tmp_path)["PI_CODING_AGENT_DIR"])
    (model,) = json.loads((folder / "models.json").read_text())["providers"]["segue"]["models"]
    assert "image" in model["input"]


def test_opencode_knows_the_model_of_moved_sessions(tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(variables_of("opencode", tmp_path)["OPENCODE_CONFIG_CONTENT"])
    provider, model = UNKNOWN_MODEL
    assert model in content["provider"][provider]["models"]
    assert {agent["model"] for agent in content["agent"].values()} == {content["model"]}
