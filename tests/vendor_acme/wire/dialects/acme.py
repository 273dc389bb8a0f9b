"""The dialect `acme`: a vendor with its own id form, that exists in `tests/test_add_a_wire.py` only."""

from __future__ import annotations

from segue.models import Model
from segue.render.constraints import Constraints
from segue.wire.ids import prefix_scheme
from segue.wire.openai_chat import make_wire
from segue.wire.openai_chat.dialect import ChatDialect

_IDS = prefix_scheme("acme", "acme_", limit=32, pattern=r"[a-zA-Z0-9_-]{1,32}")


def _constraints(_model: Model) -> Constraints:
    return Constraints("acme", "acme", id_pattern=_IDS.pattern, later_system="text", reasoning_replay="none")


WIRE = make_wire(
    ChatDialect(name="acme", provider="acme", default_model="acme-1", constraints=_constraints),
    title="Acme",
    id_scheme=lambda _model: _IDS,
    families=("acme",),
    base_path="/api/v2",
    key_header="x-acme-key",
)
