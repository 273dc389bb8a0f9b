"""MiniMax M3's calls: each tag follows a special token, keys are tags, objects and lists are nested tags.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

The token precedes every tag, so a value can't hold a tag. Items of a list are named `item`; types follow from the
schema. Parse only: `xml` renders M2's tags, since this format has neither null nor an empty list.
"""

from __future__ import annotations

import html
import re
from collections import Counter

from segue.wire.text.declared_tools import NestedElements
from segue.wire.text.regions import FoundCall, Opener, Reading, Region, Segment, literals_opener

MARKER = "]<]minimax[>["
_SECTION, _SECTION_END = f"{MARKER}<tool_call>", f"{MARKER}</tool_call>"
_INVOKE, _INVOKE_END = f"{MARKER}<invoke name=", f"{MARKER}</invoke>"
_ENDS = (_INVOKE_END, _SECTION_END, _SECTION, _INVOKE)
_END = re.compile("|".join(map(re.escape, _ENDS)))
_NAME = re.compile(r"""\s*+(?:"([^"<>]*+)"|'([^'<>]*+)')\s*+>""")
_IN_TAG = re.compile(r"[^<>]*+")
_MAX_DEPTH = 64
_TAG = re.compile(r"<(/?)([^<>]++)>(.*)", re.DOTALL)


class _Call(Region):
    """One call, with the section's tags if they come directly before or after it."""

    def read(self) -> Reading[list[Segment]]:
        if (yield from self.take_marker(_SECTION)):
            yield from self.skip_space()
        if not (yield from self.take_marker(_INVOKE)):
            return [self.build_broken_call("no call after the tag")]
        start = self.checkpoint
        yield from self.take_match(_IN_TAG)
        yield from self.take_marker(">")
        name_match = _NAME.fullmatch(self.text_since(start))
        inside = self.checkpoint
        end = yield from self.take_until(_END, max(map(len, _ENDS)))
        tree = _parse_elements(self.text_since(inside))
        if end == _INVOKE_END:
            self.take(len(end))
        if name_match is None or end != _INVOKE_END or tree is None:
            return [self.build_broken_call("no tool name" if name_match is None else "unterminated call")]
        yield from self._take_section_end()
        name = html.unescape(name_match[1] or name_match[2] or "")
        values = {key: self.declared.parse_nested(name, key, value) for key, value in tree}
        repeated = None if len(values) == len(tree) else Counter(key for key, _ in tree).most_common(1)[0][0]
        return (
            [FoundCall(name, values, raw_text=self.flush_taken(), repeated_key=repeated)]
            if name
            else [self.build_broken_call("no tool name")]
        )

    def _take_section_end(self) -> Reading[None]:
        end = self.checkpoint
        yield from self.skip_space()
        if not (yield from self.take_marker(_SECTION_END)):
            self.rewind(end)


def _parse_elements(text: str) -> list[tuple[str, NestedElements]] | None:
    """Parse the elements of a call, each with its text or its children; None if the tags are not balanced."""
    leading_text, *tags = text.split(MARKER)
    inside: list[tuple[str, str, list[tuple[str, NestedElements]]]] = [("", "", [])]
    if leading_text.strip():
        return None
    for tag in tags:
        parsed_tag = _TAG.fullmatch(tag)
        if parsed_tag is None:
            return None
        closing, key, text_after = parsed_tag.groups()
        if not closing:
            if len(inside) > _MAX_DEPTH:
                return None
            inside.append((key, text_after, []))
            continue
        opened, content, children = inside.pop()
        if opened != key or not inside or text_after.strip() or (children and content.strip()):
            return None
        inside[-1][2].append((key, children or content))
    return inside[0][2] if len(inside) == 1 else None


OPENER: Opener = literals_opener((_SECTION, _INVOKE), _Call)
