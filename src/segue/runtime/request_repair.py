"""`RequestRepair`: changes a request that a provider rejected for its size, so that it can be sent again.

Each kind of repair is applied once for a request: a lower limit of output tokens, and a compressed history.
"""

from __future__ import annotations

from collections.abc import Callable

from segue.bridge.providers import Endpoint
from segue.canonical.compress import CompressionResult
from segue.errors import InputError, ProviderError
from segue.runtime.conversation_log import ConversationLog
from segue.runtime.events import ConversationCompressed, Event, RetryScheduled
from segue.runtime.model_limits import ModelLimits

DEFAULT_STRATEGY = "dense"
# Tried where the strategy alone does not reach the budget.
_LAST_RESORT = "drop-oldest"
# The share of the context, or of the estimate if that is lower, to which a history is compressed.
COMPRESS_TO = 0.6


class RequestRepair:
    """The repairs of one request. `output_cap` is the limit of output tokens that a repair set for it alone."""

    def __init__(self, log: ConversationLog, limits: ModelLimits, strategy: str, emit: Callable[[Event], None]) -> None:
        self._log = log
        self._limits = limits
        self._strategy = strategy
        self._emit = emit
        self.output_cap: int | None = None
        self._has_lowered = False
        self._has_compressed = False

    def apply(self, endpoint: Endpoint, error: ProviderError, sent_limit: int | None) -> bool:
        """Record the limits in the error; return whether the request was changed and can be sent again.

        `sent_limit` is the limit of output tokens that the request was sent with.
        """
        if error.context_limit is not None:
            self._limits.learn(endpoint, context=error.context_limit)
        if error.output_limit is not None and not self._has_lowered:
            self._has_lowered = True
            if sent_limit is not None and error.output_limit >= sent_limit:
                return False
            return self._lower_limit(endpoint, error.output_limit, is_maximum=error.context_limit is None)
        if error.is_too_long and not self._has_compressed:
            self._has_compressed = True
            return self._compress(endpoint, error)
        return False

    def _lower_limit(self, endpoint: Endpoint, limit: int, *, is_maximum: bool) -> bool:
        """Send the request again with this limit: the maximum of the model, or what this prompt leaves."""
        self.output_cap = limit
        if is_maximum:
            self._limits.learn(endpoint, max_output=limit)
        why = f"accepts at most {limit:,} output tokens here"
        self._emit(RetryScheduled(provider=endpoint.provider, model=endpoint.model, why=why, seconds=0.0, attempt=1))
        return True

    def _compress(self, endpoint: Endpoint, error: ProviderError) -> bool:
        before = self._log.chat.tokens
        size = min(before, self._limits.sizes(endpoint).context or before)
        budget = max(1, int(size * COMPRESS_TO))
        changes = 0
        strategy = self._strategy
        for strategy in dict.fromkeys((self._strategy, _LAST_RESORT)):
            result = self._try_strategy(strategy, budget)
            if result is None:
                continue
            changes += len(result.changes)
            if result.reached:
                break
        if changes:
            self._emit(
                ConversationCompressed(
                    strategy=strategy, before=before, after=self._log.chat.tokens, why=f"{endpoint.name} {error.brief}"
                )
            )
        return bool(changes)

    def _try_strategy(self, strategy: str, budget: int) -> CompressionResult | None:
        try:
            return self._log.compress(strategy, budget)
        except InputError:
            return None
