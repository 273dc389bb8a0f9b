"""End-user ids: an id that the target does not accept is replaced by its SHA-256 hash."""

from __future__ import annotations

import re
from hashlib import sha256

from msgspec.structs import replace

from segue.canonical.request import Options
from segue.render.report import Report

# From OpenAI's reference of `safety_identifier` and its error for a longer `user`. A hash has exactly 64 digits.
OPENAI_USER_PATTERN = r"[\s\S]{0,64}"


def hash_invalid_user_id(options: Options, pattern: str, report: Report) -> Options:
    """The options with a user id that matches `pattern`."""
    if options.user is None or re.fullmatch(pattern, options.user):
        return options
    report.add("adjusted", "user id replaced by its hash: the target does not accept it", subject="user")
    return replace(options, user=sha256(options.user.encode()).hexdigest())
