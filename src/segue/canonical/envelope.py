"""The mark of an envelope: reasoning of one provider, sealed so that a client of another API can carry it.

`segue.bridge.envelopes` makes and opens envelopes. They are in the fields that an API has for opaque data, and no
provider accepts them there: a body that has one must not be sent unchanged.
"""

from __future__ import annotations

from typing import TypeGuard

ENVELOPE_PREFIX = "segueSealedReasoning"
"""The beginning of every envelope. It is base64 of 15 bytes, the same in both alphabets, and so is the whole envelope:
some clients decode these fields and encode them again. No signature of a provider begins with it by chance."""


def is_envelope(text: str | None) -> TypeGuard[str]:
    """Return whether a signature or encrypted content is an envelope, by its beginning: it may be damaged."""
    return text is not None and text.startswith(ENVELOPE_PREFIX)
