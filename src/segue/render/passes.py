"""Theory of operation: how a canonical history becomes one that a target accepts.

A history often holds what an API rejects: calls without results, results without calls, results late, twice or out of
order, reasoning signed by another provider, a system message in the middle, an empty text. Each pass below removes one
such problem. Each is a pure function from draft to draft, does nothing where there is no problem, and is idempotent;
run again, the whole list changes nothing. Passes read the target's `Constraints`, never its name; a valid message from
the target's own API is not touched.

The order matters, because each pass relies on the ones before:

0.  `drop_omitted`       Drops content that is no part of the conversation, so that later passes see real neighbours.
1.  `assign_speakers`    Every block in a message of its speaker. Later passes need not look for calls in user messages.
2.  `choose_results`     At most one result for each call.
3.  `convert_orphans`    Results without a call become text. Now every result left has a call.
4.  `convert_hosted`     Hosted tool calls become ordinary calls and results cross-API, and where another message (an
                         orphan's text, too) stands between the two.
5.  `complete_calls`     Calls without a result get one. After `choose_results`, which may have dropped a partial one;
                         now every call has exactly one result.
6.  `order_results`      Results after their calls. Needs complete pairs, and is needed before anything looks at
                         neighbours.
7.  `filter_reasoning`   Which reasoning is kept. Before `drop_empty`, since a message may have held nothing else.
8.  `mark_errors`, `place_media`   The content of results and messages. After `order_results`: media go after all
                         results of their turn.
9.  `place_system_text`  After `order_results`, so that no system message stands between a call and its result.
    `apply_response_format`   Adds instructions on the response format at the end of the system text.
10. `drop_empty`         After all passes that remove content, before those that look at neighbours.
11. `group_results`, `insert_fillers`, `merge_neighbours`, `insert_captions`, `fix_ends`   Roles, from the inside out:
                         results in messages, the order of roles, neighbours of one role (a merge may add text to media
                         that need it), the first and the last message.
12. `drop_unbound_reasoning`   Whether reasoning still matches its prefix is known when the prefix is final. If any is
                         dropped, the passes that depend on content run once more.
13. `adjust_reasoning`   The reasoning options, checked against the final messages.
14. `insert_reasoning_placeholders`   Last among blocks: a placeholder is not reasoning and must not be filtered as
                         such, and none is needed where reasoning was just switched off.
15. `declare_tools`      The tools, for the calls that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from segue.canonical.blocks import calls_of
from segue.canonical.request import Request, Tool
from segue.render.answers import answer_form
from segue.render.completions import complete, orphans, settle
from segue.render.content import captions, empties, errors, media, silent
from segue.render.demands import Demands, Policy
from segue.render.draft import Draft, loose_ids
from segue.render.hosted import hosted
from segue.render.places import place, speakers
from segue.render.reasoning import reasoning
from segue.render.reasoning_asked import open_exchange, placeholders
from segue.render.reasoning_bound import bound
from segue.render.report import Report
from segue.render.roles import bridges, ends, grouping, merging, system_text
from segue.render.transcript import Transcript

__all__ = ["PASSES", "STUB_TOOL", "declared", "rebound", "render"]

Pass = Callable[[Draft], Draft]

# Declared where the target requires tools because the history has calls, and the request has none.
STUB_TOOL = Tool("unavailable_tool", "No tool can be called at present.", {"type": "object", "properties": {}})


def rebound(draft: Draft) -> Draft:
    """Run `drop_unbound_reasoning`, and the passes that depend on content if it dropped anything."""
    made = bound(draft)
    if made is not draft:
        for step in (empties, grouping, bridges, merging, ends):
            made = step(made)
    return made


def declared(draft: Draft) -> Draft:
    """Declare the allowed tools, and a stub where the history has calls and the target requires a tool."""
    choice = draft.options.tool_choice
    if choice is not None and choice.allowed is not None and not draft.home:
        tools = tuple(tool for tool in draft.tools if tool.name in choice.allowed)
        draft.report.add("tools", "only the tools allowed by the tool choice are declared", fault="rendering")
        draft = msgspec.structs.replace(draft, tools=tools)
        draft = draft.with_options(tool_choice=msgspec.structs.replace(choice, allowed=None))
    required = draft.demands.tools_wanted
    if required == "never" or (required == "abroad" and draft.home):
        return draft
    # A hosted tool can be declared to its own provider only.
    if any(tool.kind != "hosted" or _is_of(tool, draft.demands.api) for tool in draft.tools):
        return draft
    if not any(calls_of(message) for message in draft.messages):
        return draft
    why = "added a stub tool declaration: the history has tool calls but no tools are declared"
    draft.report.add("tools", why, fault="rendering")
    return msgspec.structs.replace(draft, tools=(*draft.tools, STUB_TOOL))


def _is_of(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


PASSES: tuple[Pass, ...] = (
    silent,
    speakers,
    settle,
    orphans,
    hosted,
    complete,
    place,
    reasoning,
    errors,
    media,
    system_text,
    answer_form,
    empties,
    grouping,
    bridges,
    merging,
    captions,
    ends,
    rebound,
    open_exchange,
    placeholders,
    declared,
)


def render(
    request: Request,
    demands: Demands,
    policy: Policy,
    report: Report,
    *,
    model: str | None = None,
    spell: Callable[[str], str] = str,
) -> Transcript:
    """Render a request for the target described by `constraints`. Decisions are added to the report.

    `project_name` maps a tool name to the target's.
    """
    draft = Draft(
        request=request,
        demands=demands,
        policy=policy,
        report=report,
        model=model,
        system=request.system,
        messages=request.messages,
        tools=request.tools,
        options=request.options,
        spell=spell,
    )
    draft = msgspec.structs.replace(draft, loose=loose_ids(draft))
    report.seen.extend(call.id for message in request.messages for call in calls_of(message))
    for step in PASSES:
        draft = step(draft)
    return Transcript(
        request=request,
        demands=demands,
        policy=policy,
        system=draft.system,
        messages=draft.messages,
        tools=draft.tools,
        options=draft.options,
        model=model,
    )
