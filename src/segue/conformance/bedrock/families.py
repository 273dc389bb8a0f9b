"""The models that a rule of Converse applies to. An unknown name has the rules that most families have."""

from __future__ import annotations

from segue.conformance.rule import Holds
from segue.models import Model

__all__ = ["CLAUDE", "MISTRAL", "SEPARATE", "USER_FIRST", "WRITER", "is_claude"]


def is_claude(model: Model) -> bool:
    return model.family == "claude"


def _is_mistral(model: Model) -> bool:
    return model.family == "mistral"


def _is_writer(model: Model) -> bool:
    return model.family == "palmyra"


def _wants_user_first(model: Model) -> bool:
    return model.family not in ("claude", "qwen")


def _parts_results(model: Model) -> bool:
    return model.family in ("llama", "mistral")


CLAUDE = Holds("Claude", is_claude)
MISTRAL = Holds("Mistral", _is_mistral)
WRITER = Holds("Writer Palmyra", _is_writer)
USER_FIRST = Holds("all but Claude and Qwen", _wants_user_first)
SEPARATE = Holds("Llama and Mistral", _parts_results)
