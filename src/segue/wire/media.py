"""What wires share when they say pictures, sounds and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.blocks import Media
from segue.render.report import Report

__all__ = ["report_lost_name"]


def report_lost_name(media: Media, said: Mapping[str, Any], report: Report) -> None:
    """Writes down that the name of a file is not in what is said of it."""
    if media.name and not _holds(said, media.name):
        report.add("dropped", f"the name of {media.kind} content has no place here", subject=media.name)


def _holds(said: Mapping[str, Any], name: str) -> bool:
    """Whether one of the texts in here is the name, or tells it."""
    for key, value in said.items():
        if value == name or (key == "text" and isinstance(value, str) and name in value):
            return True
        if isinstance(value, dict) and _holds(cast("dict[str, Any]", value), name):
            return True
    return False
