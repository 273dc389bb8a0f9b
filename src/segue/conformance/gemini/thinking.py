"""Thought signatures: GEM-15, GEM-18 and GEM-21.

Only the provider can verify a signature; the check is that it is present and plausible.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from segue.conformance.gemini.fields import is_invalid_base64
from segue.conformance.gemini.request import Content, GeminiRequest, Part
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import ENVELOPE, is_envelope, quote
from segue.models import Model

table: RuleTable[GeminiRequest] = RuleTable()

# GEM-17
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
DUMMY_SIGNATURES = frozenset({*_DUMMIES, *(b64encode(dummy.encode()).decode() for dummy in _DUMMIES)})


def _needs_signatures(model: Model) -> bool:
    """Return whether the model requires signatures: Gemini 3 and newer, and names without a version."""
    if model.family == "gemma":
        return False
    return model.family != "gemini" or not model.version or model.at_least(3)


NEWER = ModelFilter("Gemini 3 and newer, and names without a version", _needs_signatures)


def _current_contents(request: GeminiRequest) -> Iterator[Content]:
    """Yield the contents since the last user content that is not only function responses."""
    start = 0
    for position, content in enumerate(request.merged_contents):
        if not content.is_model and any(not part.has_member("function_response") for part in content.parts):
            start = position
    yield from request.merged_contents[start:]


def _call_parts(content: Content) -> list[Part]:
    return [part for part in content.parts if part.has_member("function_call")]


# GEM-15, GEM-16, GEM-20
@table.rule("GEM-15", applies_to=NEWER)
def first_call_signed(request: GeminiRequest) -> Iterator[Problem]:
    """In the current exchange the first functionCall of every model content has its thoughtSignature."""
    # Vertex documents that image models do not enforce it. Without a known model it may be an older one.
    severity: Severity = "risk" if "image" in request.model.name or not request.model.version else "reject"
    for content in _current_contents(request):
        calls = _call_parts(content) if content.is_model else []
        if calls and calls[0].node.get("thought_signature") in (None, ""):
            name = calls[0].node.child("function_call").text("name")
            seen = f"Function call is missing a thought_signature in functionCall parts: {quote(name)}"
            why = "" if request.model.version else "; Gemini 3 and newer reject it"
            yield Problem(calls[0].node.path_of("thought_signature"), f"{seen}{why}", severity)


@table.rule("GEM-18")
def signature_plausible(request: GeminiRequest) -> Iterator[Problem]:
    """A thoughtSignature is padded base64."""
    for part in request.parts():
        signature = part.signature
        where = part.node.path_of("thought_signature")
        if is_envelope(signature):
            yield Problem(where, f"Corrupted thought signature: it is {ENVELOPE}")
        elif is_invalid_base64(signature):
            seen = f"Invalid value (TYPE_BYTES), Base64 decoding failed for {quote(signature)}"
            yield Problem(where, seen)
        elif len(signature) % 4:
            # Neither the API nor the SDK omits the padding; it decodes, but is probably not a signature.
            yield Problem(
                where,
                f"{quote(signature)} is not like a signature of Gemini: corrupted, or from another provider",
                "risk",
            )


@table.rule("GEM-21", severity="risk")
def signature_in_place(request: GeminiRequest) -> Iterator[Problem]:
    """A signature stays on the model part that it was returned with."""
    first: dict[str, str] = {}
    for content in request.merged_contents:
        calls = _call_parts(content)
        moved = {id(part) for part in calls[1:] if not calls[0].signature}
        for part in content.parts:
            signature = part.signature
            if not signature:
                continue
            where = part.node.path_of("thought_signature")
            if not content.is_model:
                yield Problem(where, f"a signature in a {content.role or 'user'} content; only model parts have one")
            elif signature in DUMMY_SIGNATURES:
                continue
            elif first.setdefault(signature, part.path) != part.path:
                yield Problem(where, f"this part has the same signature as {first[signature]}")
            elif id(part) in moved:
                yield Problem(where, f"this part is signed, but the first functionCall at {calls[0].path} is not")
