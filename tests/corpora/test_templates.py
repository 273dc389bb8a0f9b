"""Rows of the format `template` are rendered by the models' own chat templates with every call and result once."""

from __future__ import annotations

import pytest
from jinja2.exceptions import TemplateError

from segue.corpora import convert_session
from tests.corpora.samples import MARKERS, REASONING, session
from tests.templates.engine import prompt
from tests.templates.unpack import FOLDER, missing_reason

# Why a template can't show every call of these rows.
NO_CALLS = "it has no calls, or prints their arguments as nothing"
ONE_CALL = "it has one call at most in a reply"
ODD_IDS = "it requires ids of nine letters and digits"
WITHOUT = {
    **dict.fromkeys(("HuggingFaceTB-SmolLM3-3B", "LFM2-8B-A1B", "LFM2.5-Instruct", "llama-cpp-rwkv-world"), NO_CALLS),
    **dict.fromkeys(("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "microsoft-Phi-3.5-mini-instruct"), NO_CALLS),
    **dict.fromkeys(("ibm-granite-granite-3.3-2B-Instruct", "llama-cpp-deepseek-r1", "google-gemma-2-2b-it"), NO_CALLS),
    **dict.fromkeys(("GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B", "openai-gpt-oss-120b"), ONE_CALL),
    **{f"meta-llama-Llama-3.{version}-Instruct": ONE_CALL for version in ("1-8B", "2-3B", "3-70B")},
    **dict.fromkeys(("Mistral-Small-3.2-24B-Instruct-2506", "mistralai-Mistral-Nemo-Instruct-2407"), ODD_IDS),
    "CohereForAI-c4ai-command-r-plus-tool_use": "it requires descriptions, which nothing is known of",
    "fireworks-ai-llama-3-firefunction-v2": "it has a variable of its own for tools",
    "meetkai-functionary-medium-v3.2": "it takes arguments as text",
}
TEMPLATES = sorted(file.stem for file in FOLDER.glob("*.jinja")) if FOLDER.is_dir() else ["none"]
SHOWING_REASONING = ("GLM-4.6", "MiniMax-M2", "Qwen-Qwen3-0.6B", "Qwen3.5-4B", "ByteDance-Seed-OSS", "Kimi-K3")


@pytest.fixture(autouse=True)
def _templates() -> None:
    if missing := missing_reason():
        pytest.skip(missing)


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in WITHOUT])
def test_every_call_and_result_is_in_the_prompt_once(template: str):
    (row,) = convert_session(session(), to="template")
    text = prompt(template, row["messages"], row["tools"])
    wanted = (*MARKERS, REASONING) if template in SHOWING_REASONING else MARKERS
    assert {marker: text.count(marker) for marker in wanted} == dict.fromkeys(wanted, 1)


@pytest.mark.parametrize("template", WITHOUT)
def test_other_templates_can_not_show_these_rows(template: str):
    (row,) = convert_session(session(), to="template")
    try:
        text = prompt(template, row["messages"], row["tools"])
    except (TypeError, TemplateError):
        return
    assert any(text.count(marker) != 1 for marker in MARKERS)
