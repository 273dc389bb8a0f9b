"""The renderer: the list of passes that turn a canonical history into one that a target accepts.

A history may contain what an API rejects: calls without results, results without calls, results late, twice or out of
order, reasoning signed by another provider, a system message in the middle, an empty text. Each pass below removes one
such problem. Each is a pure, idempotent function from draft to draft that does nothing where there is no problem; a
second run of the whole list changes nothing. Passes read the target's `Constraints`, never its name; a valid message
from the target's own API is not touched.

The order matters, because each pass relies on the ones before:

0.  `drop_omitted`       Drops content that is no part of the conversation, so that it separates no other messages.
1.  `assign_speakers`    Puts every block into a message of its speaker: no later pass finds calls in user messages.
2.  `choose_results`     At most one result for each call.
3.  `convert_orphans`    Results without a call become text. Now every result left has a call.
4.  `convert_hosted`     Hosted tool calls become ordinary calls and results: cross-API, and where another message is
                         between call and result (it may be the text of an orphan).
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
12. `drop_stale_reasoning`   Drops reasoning whose prefix has changed, so it needs the final prefix. If any is
                         dropped, the passes that depend on content run once more.
13. `adjust_reasoning`   The reasoning options, checked against the final messages.
14. `insert_reasoning_placeholders`   After the reasoning passes, which would drop a placeholder, and after
                         `adjust_reasoning`, which may have switched reasoning off.
15. `declare_tools`      The tools, for the calls that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from segue.canonical.blocks import calls_of
from segue.canonical.request import Request, Tool
from segue.render.constraints import Constraints, Policy
from segue.render.content import drop_empty, drop_omitted, insert_captions, mark_errors, place_media
from segue.render.draft import Draft, find_unpaired_ids
from segue.render.hosted import convert_hosted
from segue.render.ordering import assign_speakers, order_results
from segue.render.reasoning import filter_reasoning
from segue.render.reasoning_options import adjust_reasoning, insert_reasoning_placeholders
from segue.render.reasoning_prefix import drop_stale_reasoning
from segue.render.report import Report
from segue.render.response_format import apply_response_format
from segue.render.results import choose_results, complete_calls, convert_orphans
from segue.render.roles import fix_ends, group_results, insert_fillers, merge_neighbours, place_system_text
from segue.render.transcript import Transcript

Pass = Callable[[Draft], Draft]

# Declared where the target requires tools because the history has calls, and the request has none.
STUB_TOOL = Tool("unavailable_tool", "No tool can be called at present.", {"type": "object", "properties": {}})


def drop_stale_reasoning_and_regroup(draft: Draft) -> Draft:
    """Run `drop_stale_reasoning`, and the passes that depend on content if it dropped anything."""
    changed = drop_stale_reasoning(draft)
    if changed is not draft:
        for step in (drop_empty, group_results, insert_fillers, merge_neighbours, fix_ends):
            changed = step(changed)
    return changed


def declare_tools(draft: Draft) -> Draft:
    """Declare the allowed tools, and a stub where the history has calls and the target requires a tool."""
    choice = draft.options.tool_choice
    if choice is not None and choice.allowed is not None and not draft.is_same_api:
        tools = tuple(tool for tool in draft.tools if tool.name in choice.allowed)
        draft.report.add(
            "tools", "tools that the tool choice does not allow dropped", fault="rendering", level="changed"
        )
        draft = msgspec.structs.replace(draft, tools=tools)
        draft = draft.with_options(tool_choice=msgspec.structs.replace(choice, allowed=None))
    required = draft.constraints.tools_required
    if required == "never" or (required == "cross-api" and draft.is_same_api):
        return draft
    # A hosted tool can be declared to its own provider only.
    if any(tool.kind != "hosted" or _is_from_api(tool, draft.constraints.api) for tool in draft.tools):
        return draft
    if not any(calls_of(message) for message in draft.messages):
        return draft
    why = "added a stub tool declaration: the history has tool calls but no tools are declared"
    draft.report.add("tools", why, fault="rendering")
    return msgspec.structs.replace(draft, tools=(*draft.tools, STUB_TOOL))


def _is_from_api(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


PASSES: tuple[Pass, ...] = (
    drop_omitted,
    assign_speakers,
    choose_results,
    convert_orphans,
    convert_hosted,
    complete_calls,
    order_results,
    filter_reasoning,
    mark_errors,
    place_media,
    place_system_text,
    apply_response_format,
    drop_empty,
    group_results,
    insert_fillers,
    merge_neighbours,
    insert_captions,
    fix_ends,
    drop_stale_reasoning_and_regroup,
    adjust_reasoning,
    insert_reasoning_placeholders,
    declare_tools,
)


def render(
    request: Request,
    constraints: Constraints,
    policy: Policy,
    report: Report,
    *,
    model: str | None = None,
    resolved_model: str | None = None,
    project_name: Callable[[str], str] = str,
) -> Transcript:
    """Render a request for the target described by `constraints`. Decisions are added to the report.

    `project_name` maps a tool name to the target's. `resolved_model` is the recorded model that `model` is an alias of.
    """
    draft = Draft(
        request=request,
        constraints=constraints,
        policy=policy,
        report=report,
        model=model,
        system=request.system,
        messages=request.messages,
        tools=request.tools,
        options=request.options,
        project_name=project_name,
    )
    draft = msgspec.structs.replace(draft, unpaired_ids=find_unpaired_ids(draft))
    report.seen.extend(call.id for message in request.messages for call in calls_of(message))
    for step in PASSES:
        draft = step(draft)
    return Transcript(
        request=request,
        constraints=constraints,
        policy=policy,
        system=draft.system,
        messages=draft.messages,
        tools=draft.tools,
        options=draft.options,
        model=model,
        resolved_model=resolved_model,
    )
