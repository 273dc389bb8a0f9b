"""Thought signatures: GEM-15, GEM-18 and GEM-21.

Only the provider can verify a signature; the check is that it is present and plausible.
"""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.gemini.request import Content, GeminiRequest, Part
from segue.conformance.gemini.shape import base64_fault
from segue.conformance.rule import Finding, Holds, Severity, Table
from segue.conformance.values import quoted
from segue.models import Model

__all__ = ["DUMMIES", "table"]

table: Table[GeminiRequest] = Table()

# GEM-17
DUMMIES = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})


def _wants_signatures(model: Model) -> bool:
    """True for Gemini 3 and newer, and for names without a version."""
    if model.family == "gemma":
        return False
    return model.family != "gemini" or not model.version or model.at_least(3)


NEWER = Holds("Gemini 3 and newer, and names without a version", _wants_signatures)


def _current(request: GeminiRequest) -> Iterator[Content]:
    """Yields the contents since the last user content that is not only function responses."""
    start = 0
    for position, content in enumerate(request.turns):
        if not content.is_model and any(not part.has("function_response") for part in content.parts):
            start = position
    yield from request.turns[start:]


def _calls(content: Content) -> list[Part]:
    return [part for part in content.parts if part.has("function_call")]


# GEM-15, GEM-16, GEM-20
@table.rule("GEM-15", holds=NEWER)
def first_call_signed(request: GeminiRequest) -> Iterator[Finding]:
    """In the current turn the first functionCall of every model step carries its thoughtSignature."""
    # Vertex documents that image models do not enforce it. Without a known model it may be an older one.
    severity: Severity = "risk" if "image" in request.model.name or not request.model.version else "reject"
    for content in _current(request):
        calls = _calls(content) if content.is_model else []
        if calls and calls[0].node.get("thought_signature") in (None, ""):
            name = calls[0].node.child("function_call").text("name")
            seen = f"Function call is missing a thought_signature in functionCall parts: {quoted(name)}"
            why = "" if request.model.version else "; Gemini 3 and newer reject it"
            yield Finding(calls[0].node.at("thought_signature"), f"{seen}{why}", severity)


# GEM-18
@table.rule("GEM-18")
def signature_plausible(request: GeminiRequest) -> Iterator[Finding]:
    """A thoughtSignature is padded base64."""
    for part in request.parts():
        signature = part.signature
        where = part.node.at("thought_signature")
        if base64_fault(signature):
            seen = f"Invalid value (TYPE_BYTES), Base64 decoding failed for {quoted(signature)}"
            yield Finding(where, seen)
        elif len(signature) % 4:
            # Neither the API nor the SDK omits the padding; it decodes, but is probably not a signature.
            yield Finding(
                where,
                f"{quoted(signature)} is not like a signature of Gemini: corrupted, or from another provider",
                "risk",
            )


# GEM-21
@table.rule("GEM-21", severity="risk")
def signature_in_place(request: GeminiRequest) -> Iterator[Finding]:
    """A signature stays on the model part that it was returned with."""
    first: dict[str, str] = {}
    for content in request.turns:
        calls = _calls(content)
        moved = {id(part) for part in calls[1:] if not calls[0].signature}
        for part in content.parts:
            signature = part.signature
            if not signature:
                continue
            where = part.node.at("thought_signature")
            if not content.is_model:
                yield Finding(where, f"a signature in a {content.role or 'user'} content; only model parts have one")
            elif signature in DUMMIES:
                continue
            elif first.setdefault(signature, part.path) != part.path:
                yield Finding(where, f"the same signature as {first[signature]}")
            elif id(part) in moved:
                yield Finding(where, f"this part is signed, but the first functionCall at {calls[0].path} is not")
