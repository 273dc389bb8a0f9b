"""Filters for rules of Converse that apply to some models only. Unknown models get the rules of most model families."""

from __future__ import annotations

from segue.conformance.rule import ModelFilter
from segue.models import Model


def is_claude(model: Model) -> bool:
    return model.family == "claude"


def _is_mistral(model: Model) -> bool:
    return model.family == "mistral"


def _is_writer(model: Model) -> bool:
    return model.family == "palmyra"


def _needs_user_first(model: Model) -> bool:
    return model.family not in ("claude", "qwen")


def _needs_separate_results(model: Model) -> bool:
    return model.family in ("llama", "mistral")


CLAUDE = ModelFilter("Claude", is_claude)
NOT_CLAUDE = ModelFilter("all but Claude", lambda model: not is_claude(model))
MISTRAL = ModelFilter("Mistral", _is_mistral)
WRITER = ModelFilter("Writer Palmyra", _is_writer)
USER_FIRST = ModelFilter("all but Claude and Qwen", _needs_user_first)
SEPARATE_RESULTS = ModelFilter("Llama and Mistral", _needs_separate_results)
