"""The server profile `deepseek-responses`: DeepSeek's Responses API.

It folds calls into assistant messages: outputs directly follow the calls of their turn, in call order (DS-11).
Reasoning is plain text. The service's ids are UUIDs (OAI-RESP-03).
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.models import Model, cache_by_model
from segue.render.constraints import Constraints
from segue.wire.openai_responses import FOLDED_CALLS, constraints, make_wire
from segue.wire.openai_responses.context import OPENAI, is_any_id

_NAME = "deepseek-responses"
_DIALECT = replace(OPENAI, provider="deepseek", vendor_options=False, is_valid_id=is_any_id)


@cache_by_model
def _constraints(model: Model) -> Constraints:
    return replace(constraints(model), **FOLDED_CALLS, provider=_DIALECT.provider, can_reason=True)


WIRE = make_wire(_DIALECT, "DeepSeek Responses", "deepseek-flash", _constraints, kind="server", profile=_NAME)
