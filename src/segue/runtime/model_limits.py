"""`ModelLimits`: the context size and the output limit of each model, as far as they are known.

They come from the catalogue and the configuration, and are learned from errors and from the server's list of models.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from segue.bridge.providers import Endpoint

# Reserved for the error of the token estimate.
_MARGIN, _MARGIN_SHARE = 1_000, 20
# Less is not useful, and the estimate of the prompt may be too high.
_MIN_OUTPUT = 1_024


class ModelSizes(Struct, frozen=True):
    """Sizes of a model in tokens, None if unknown."""

    context: int | None = None
    max_output: int | None = None


class ModelLimits:
    """The sizes of models. What is learned of a model takes precedence, and is shared by all sessions of an agent."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, str], ModelSizes] = {}

    def sizes(self, endpoint: Endpoint) -> ModelSizes:
        learned = self._learned.get((endpoint.base_url, endpoint.model), ModelSizes())
        return ModelSizes(learned.context or endpoint.context, learned.max_output or endpoint.max_output)

    def learn(self, endpoint: Endpoint, *, context: int | None = None, max_output: int | None = None) -> None:
        """Record sizes of a model; None changes nothing."""
        key = endpoint.base_url, endpoint.model
        known = self._learned.get(key, ModelSizes())
        self._learned[key] = replace(known, context=context or known.context, max_output=max_output or known.max_output)

    def output_limit(self, endpoint: Endpoint, prompt: int, requested: int | None = None) -> int | None:
        """Return the limit of output tokens for a request whose prompt has about this many tokens.

        It is the maximum of the model, or the `requested` limit, reduced to the room that the prompt leaves in the
        context. It is None where neither is known: a provider has a default of its own then.
        """
        sizes = self.sizes(endpoint)
        limit = requested or sizes.max_output
        if requested is not None and sizes.max_output is not None:
            limit = min(requested, sizes.max_output)
        if limit is None or sizes.context is None:
            return limit
        room = sizes.context - prompt - _MARGIN - prompt // _MARGIN_SHARE
        return min(limit, max(room, _MIN_OUTPUT))
