"""The tokenizer version of a model, which many rules depend on. Dated model names give it."""

from __future__ import annotations

import re
from functools import lru_cache

from segue.conformance.rule import ModelFilter
from segue.models import Model

_DATE = re.compile(r"(?<!\d)2[3-9](?:0[1-9]|1[0-2])(?!\d)")
_V3_NAMES = re.compile(r"mixtral|nemo|mamba|tiny|(?<![\dx.])7b(?![a-z\d])")
# The first month of models with a newer tokenizer.
_SINCE = ((2603, 15), (2509, 13), (2506, 11), (2411, 7))


@lru_cache(maxsize=128)
def tokenizer_version(model: Model) -> int | None:
    """Return the tokenizer version by model name: 3, 7, 11, 13, 15, or `None` if unknown."""
    name = model.name.lower()
    if model.family != "mistral":
        return None
    if _V3_NAMES.search(name):
        return 3
    date = _DATE.search(name)
    if date is None:
        return None
    return next((version for month, version in _SINCE if int(date[0]) >= month), 3)


def is_older_than(version: int, model: Model) -> bool:
    actual = tokenizer_version(model)
    return actual is not None and actual < version


V3 = ModelFilter("models of the v3 tokenizer, up to October 2024", lambda model: is_older_than(7, model))
BEFORE_V11 = ModelFilter("models before June 2025 (tokenizers v3 and v7)", lambda model: is_older_than(11, model))
V11 = ModelFilter("models since June 2025, and names without a date", lambda model: not is_older_than(11, model))
