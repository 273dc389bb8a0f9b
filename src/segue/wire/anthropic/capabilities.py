"""Which options each generation of Claude supports: one row per model, by its version.

Facts from the vendor's migration guides up to 5.5. An unknown model gets the row that most servers of this API
support: thinking by budget, free sampling.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from segue.canonical.request import Effort
from segue.models import Model

API = "anthropic"
DEFAULT_MODEL = "claude-sonnet-5"


class Capabilities(Struct, frozen=True):
    """`disabled_type` is the `thinking.type` that disables thinking; None if the model cannot think or always does.

    `budgets` and `adaptive`: which kinds of thinking it has; `sampling`, `forced_choice`, `schemas`: whether it accepts
    sampling options, a forced tool choice, a response schema.
    """

    budgets: bool = True
    adaptive: bool = False
    disabled_type: Literal["disabled", "between_tools"] | None = "disabled"
    thinks_by_default: bool = False
    hides_thinking: bool = False
    """Whether the text of thinking is omitted unless the request asks for it."""
    efforts: tuple[Effort, ...] = ()
    any_effort: bool = True
    """Whether the model may accept other efforts too."""
    sampling: bool = True
    one_sampling_option: bool = False
    """Whether the model accepts `temperature` or `top_p`, but not both."""
    forced_choice: bool = True
    schemas: bool = True
    max_tokens: int | None = None
    """The maximum of `max_tokens`."""


@lru_cache(maxsize=128)
def capabilities_of(model: Model) -> Capabilities:
    always_thinks = model.line in ("fable", "mythos")
    if model.family != "claude" or not (model.version or always_thinks):
        return Capabilities()
    return _capabilities_for(model.line, model.version or (5,), always_thinks)


def _capabilities_for(line: str, version: tuple[int, ...], always_thinks: bool) -> Capabilities:
    return Capabilities(
        budgets=(3, 7) <= version < (4, 7) and not always_thinks,
        adaptive=always_thinks or version >= (4, 6),
        disabled_type=_disabled_type(line, version, always_thinks),
        thinks_by_default=always_thinks or version >= (5,),
        hides_thinking=always_thinks or version >= (4, 7),
        efforts=_efforts(line, version, always_thinks),
        any_effort=line == "haiku" and version >= (4, 6),
        sampling=version < (4, 7) and not always_thinks,
        one_sampling_option=version >= (4, 1),
        forced_choice=line == "haiku" or version < ((5, 1) if always_thinks else (5, 5)),
        schemas=version >= (4, 1),
        max_tokens=_max_tokens(line, version),
    )


def _disabled_type(
    line: str, version: tuple[int, ...], always_thinks: bool
) -> Literal["disabled", "between_tools"] | None:
    if always_thinks or version < (3, 7) or (line == "opus" and version >= (5, 5)):
        return None
    return "between_tools" if line == "sonnet" and version >= (5, 5) else "disabled"


def _efforts(line: str, version: tuple[int, ...], always_thinks: bool) -> tuple[Effort, ...]:
    # ANT-42
    if always_thinks or version >= (4, 7):
        return ("low", "medium", "high", "xhigh", "max")
    if version >= (4, 6):
        return ("low", "medium", "high", "max")
    return ("low", "medium", "high") if line == "opus" and version >= (4, 5) else ()


def _max_tokens(line: str, version: tuple[int, ...]) -> int:
    if version < (3, 7):
        return 4096 if version < (3, 5) else 8192
    if version < (4, 6):
        return 32_000 if line == "opus" and (4,) <= version < (4, 5) else 64_000
    return 64_000 if version < (4, 7) and line != "opus" else 128_000
