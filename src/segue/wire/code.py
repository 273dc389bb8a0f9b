"""Code as text, for APIs that have no content type for it."""

from __future__ import annotations

import re

from segue.canonical.blocks import Code

_BACKTICKS = re.compile("`{3,}")


def fence_code(code: Code) -> str:
    """Return the code in a Markdown fence, which is longer than any run of backticks in the code."""
    longest = max(map(len, _BACKTICKS.findall(code.code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{code.language}\n{code.code}\n{fence}"
