"""How clients are pointed at a gateway. `make clients` runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from segue.gateway.client_setups import CLIENTS, SetupContext

MODEL = "some/unknown-model"


def variables_of(client: str, folder: Path) -> dict[str, str]:
    files = folder / "files"
    files.mkdir()
    environ = {"PI_CODING_AGENT_DIR": str(folder / "pi")}
    launch = CLIENTS[client].prepare(SetupContext("http://127.0.0.1:1", "key", MODEL, files, environ))
    return dict(launch.variables)


def test_opencode_sends_pictures_to_any_model(tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(variables_of("opencode", tmp_path)["OPENCODE_CONFIG_CONTENT"])
    model = content["provider"]["segue"]["models"][MODEL]
    assert model["attachment"] is True
    assert "image" in model["modalities"]["input"]


def test_qwen_sends_pictures_to_any_model(tmp_path: Path) -> None:
    settings = json.loads(Path(variables_of("qwen", tmp_path)["QWEN_CODE_SYSTEM_SETTINGS_PATH"]).read_text())
    assert settings["model"]["generationConfig"]["modalities"]["image"] is True


def test_pi_sends_pictures_to_any_model(tmp_path: Path) -> None:
    folder = Path(variables_of("pi", tmp_path)["PI_CODING_AGENT_DIR"])
    (model,) = json.loads((folder / "models.json").read_text())["providers"]["segue"]["models"]
    assert "image" in model["input"]
