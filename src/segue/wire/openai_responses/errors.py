"""The forms of errors for clients of the Responses API.

Codex knows `context_length_exceeded` only as a code of the event `response.failed`, in which the vendor sends it. It
repeats a request after any status but 400, 429 and 503, waits only for the "try again in" of an event, and repeats it
after an event whose code it does not know: `invalid_prompt` ends the turn and shows the text. In place of the text of
`insufficient_quota` it tells its user to check a plan, so that is not the code of an event.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.wire.error_forms import ErrorForms
from segue.wire.openai_chat.errors import ERROR_FORMS as _CHAT_FORMS

_ALL = ("",)
_CODEX = ("codex",)
_FINAL = "invalid_prompt"
_TEMPORARY = "server_error"

ERROR_FORMS: ErrorForms = {
    **{
        kind: replace(form, event_code=_TEMPORARY)
        for kind, form in _CHAT_FORMS.items()
        if kind in ("overloaded", "failed", "unreachable", "timeout", "broken")
    },
    "too-long": replace(
        _CHAT_FORMS["too-long"],
        event_agents=_ALL,
        text="Your input exceeds the context window of this model.",
        sizes="",
    ),
    "no-credit": replace(_CHAT_FORMS["no-credit"], event_code=_FINAL, event_agents=_CODEX),
    "rate-limited": replace(_CHAT_FORMS["rate-limited"], event_agents=_CODEX),
    "policy": replace(_CHAT_FORMS["policy"], code=_FINAL),
    "unknown-reference": _CHAT_FORMS["unknown-reference"],
    # With its own key, Codex acts on the vendor's status: it refreshes its token.
    **{
        kind: replace(_CHAT_FORMS[kind], event_code=_FINAL)
        for kind in ("invalid", "too-large", "unknown-path", "client-key", "client-access")
    },
    **{
        kind: replace(_CHAT_FORMS[kind], event_code=_FINAL, event_agents=_CODEX)
        for kind in ("provider-key", "provider-access", "no-key", "unknown-model")
    },
}
