"""Who asks, as a target can be told: an id that it does not take goes out as its hash, always the same one."""

from __future__ import annotations

import re
from hashlib import sha256

from msgspec.structs import replace

from segue.canonical.request import Options
from segue.render.report import Report

__all__ = ["OPENAI_USERS", "fit_user"]

# The reference of `safety_identifier`, and the error on a longer `user`. A hash of 64 digits just fits.
OPENAI_USERS = r"[\s\S]{0,64}"


def fit_user(options: Options, lawful: str, report: Report) -> Options:
    """The options with a user id that the pattern `lawful` holds for."""
    if options.user is None or re.fullmatch(lawful, options.user):
        return options
    report.add("adjusted", "the user's id is not one that is taken here: its hash is sent", subject="user")
    return replace(options, user=sha256(options.user.encode()).hexdigest())
