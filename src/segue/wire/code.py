"""Code as text, for APIs that have no content type for it."""

from __future__ import annotations

from segue.canonical.blocks import Code


def fence_code(code: Code) -> str:
    """Return the code in a Markdown fence: four backticks if the code itself has a fence of three."""
    fence = "````" if "```" in code.code else "```"
    return f"{fence}{code.language}\n{code.code}\n{fence}"
