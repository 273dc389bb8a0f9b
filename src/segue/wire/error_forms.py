"""`ErrorForm`: how clients of an API get an error of one kind, and `fit_error`, which gives an error that form.

A form has what the API's own clients act on: the status, the type and code, a text that they look for, and whether the
error of a streamed request is an event of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from segue.error_kinds import KINDS, ErrorKind, find_kind
from segue.limit_errors import find_context_limit, find_prompt_size

if TYPE_CHECKING:
    from segue.wire.base import ApiError, Wire

# What a vendor says about these is kept where its clients get it.
_VENDOR_KINDS = frozenset[ErrorKind]({"invalid", "unknown-reference", "client-key", "client-access"})


class ErrorForm(Struct, frozen=True):
    """`status` is that of a response; the provider's own is sent if it `keeps_status` and both are of one class.

    `event_code` is the code in a stream, where it differs. Clients whose user agent begins with one of `event_agents`
    get the error of a streamed request as an event even if nothing was sent before: they act on it only there. `text`
    begins the message, unless the provider's text has it; `sizes` does where the sizes in tokens are known. `note` ends
    it. `known_codes` are the codes of the provider that clients know too, and that are sent as they are.
    """

    status: int
    type: str
    code: str | None = None
    event_code: str | None = None
    keeps_status: bool = False
    event_agents: tuple[str, ...] = ()
    text: str = ""
    sizes: str = ""
    note: str = ""
    known_codes: frozenset[str] = frozenset()

    def is_event(self, user_agent: str) -> bool:
        return user_agent.lower().startswith(self.event_agents)


ErrorForms = Mapping[ErrorKind, ErrorForm]


def classify_error(error: ApiError) -> ErrorKind:
    """Return the kind of an error, which is found once."""
    return error.error_kind or find_kind(error.status, (error.kind, error.code), error.message)


def fit_error(error: ApiError, wire: Wire, *, is_same_api: bool = False) -> ApiError:
    """Return an error in the form for clients of an API. `is_same_api`: it comes from a provider of this API."""
    kind = classify_error(error)
    form = wire.error_forms[kind]
    message = _fit_message(error.message, form)
    if is_same_api and kind in _VENDOR_KINDS:
        return replace(error, status=error.status or form.status, message=message, error_kind=kind)
    keeps_status = form.keeps_status and error.status // 100 == form.status // 100
    known = next((name for name in (error.code, error.kind) if name in form.known_codes), None)
    return replace(
        error,
        status=error.status if keeps_status else form.status,
        message=message,
        kind=form.type if known is None else known,
        code=form.code if known is None else known,
        param=None,
        details=(),
        error_kind=kind,
        wait=None if KINDS[kind].is_final else error.wait,
    )


def _fit_message(message: str, form: ErrorForm) -> str:
    prompt, context = find_prompt_size(message), find_context_limit(message)
    text = form.sizes.format(prompt=prompt, context=context) if form.sizes and prompt and context else form.text
    begin = "" if not text or form.text.lower() in message.lower() else f"{text} "
    return f"{begin}{message}{form.note}"
