"""Filters for rules of Converse that apply to some models only. Unknown models get the rules of most model families."""

from __future__ import annotations

import re

from segue.conformance.rule import ModelFilter
from segue.models import Model

_TAKE_MOST_IDS = re.compile(r"pixtral-large-2502|mistral-(?:large|small)-2402")


def is_claude(model: Model) -> bool:
    return model.family == "claude"


def is_deepseek(model: Model) -> bool:
    return model.family == "deepseek"


def _is_mistral(model: Model) -> bool:
    return model.family == "mistral"


def _takes_most_ids(model: Model) -> bool:
    return _is_mistral(model) and _TAKE_MOST_IDS.search(model.name) is not None


def _is_nova(model: Model) -> bool:
    return model.family == "nova"


def is_named(model: Model) -> bool:
    """Return whether the name is that of a model, with its maker, and not of a profile or alias."""
    return bool(model.family) or "." in model.name


def needs_separate_results(model: Model) -> bool:
    return model.family in ("llama", "mistral")


CLAUDE = ModelFilter("Claude", is_claude)
NOT_CLAUDE = ModelFilter("all but Claude", lambda model: not is_claude(model))
WRITER = ModelFilter("Writer Palmyra", lambda model: model.family == "palmyra")
USER_FIRST = ModelFilter("all but Claude and Qwen", lambda model: model.family not in ("claude", "qwen"))
BESIDE_RESULTS_UNSURE = ModelFilter("all but Claude and Nova", lambda model: model.family not in ("claude", "nova"))
TAKE_MOST_IDS = ModelFilter("Pixtral Large 2502, Mistral Large 2402 and Mistral Small 2402", _takes_most_ids)
OTHER_MISTRAL = ModelFilter("other Mistral models", lambda model: _is_mistral(model) and not _takes_most_ids(model))
OWN_MEDIA = ModelFilter("Claude and Nova", lambda model: is_claude(model) or _is_nova(model))
