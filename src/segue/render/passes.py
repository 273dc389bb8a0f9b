"""The renderer: the list of passes that turn a canonical history into one that a target accepts.

A history may contain what an API rejects: calls without results, results without calls, results late, twice or out of
order, reasoning signed by another provider, a system message in the middle, an empty text. Each pass below removes one
such problem. Each is a pure, idempotent function from draft to draft that does nothing where there is no problem; a
second run of the whole list changes nothing. `TRAITS_NEEDED` lists what must occur in a draft for a pass to have work;
only such passes are run. Passes read the target's `Constraints`, never its name; a valid message from the target's own
API is not touched.

The order matters, because each pass relies on the ones before:

0.  `replace_compactions`   What stands for earlier history, by that history or a text where the target can't read it.
    `drop_omitted`       Drops content that is no part of the conversation, so that it separates no other messages.
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
8.  `label_errors`, `place_media`   The content of results and messages. After `order_results`: media go after all
                         results of their turn.
9.  `place_system_text`  After `order_results`, so that no system message stands between a call and its result.
    `apply_response_format`   Adds instructions on the response format at the end of the system text.
10. `drop_empty`         After all passes that remove content, before those that look at neighbours.
11. `group_results`, `insert_fillers`, `merge_neighbours`, `insert_captions`, `fix_ends`   Roles, from the inside out:
                         results in messages, the order of roles, neighbours of one role (a merge may add text to media
                         that need it), the first and the last message.
12. `drop_stale_reasoning`   Drops reasoning whose prefix has changed, so it needs the final prefix. If any is
                         dropped, the passes that depend on content run once more.
13. `fit_ranges`        Numbers that the target rejects, by themselves.
    `adjust_reasoning`   The reasoning options, checked against the final messages.
14. `insert_reasoning_placeholders`   After the reasoning passes, which would drop a placeholder, and after
                         `adjust_reasoning`, which may have switched reasoning off.
15. `declare_tools`      The tools, for the calls that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from segue.canonical.blocks import Media, Opaque, Thinking, ToolCall, ToolResponse, calls_of
from segue.canonical.contents import Contents, summarize
from segue.canonical.request import Request, Tool
from segue.render.compaction import replace_compactions
from segue.render.constraints import Constraints, Policy
from segue.render.content import drop_empty, drop_omitted, insert_captions, label_errors, place_media
from segue.render.draft import Draft, find_unpaired_ids
from segue.render.hosted import convert_hosted
from segue.render.ordering import assign_speakers, order_results
from segue.render.prefix_digest import BoundPrefix
from segue.render.ranges import move_into_range
from segue.render.reasoning import filter_reasoning
from segue.render.reasoning_options import adjust_reasoning, insert_reasoning_placeholders
from segue.render.reasoning_prefix import drop_stale_reasoning
from segue.render.report import Report
from segue.render.response_format import apply_response_format
from segue.render.results import choose_results, complete_calls, convert_orphans
from segue.render.roles import fix_ends, group_results, insert_fillers, merge_neighbours, place_system_text
from segue.render.traits import BLOCK_TYPES, NO_BLOCKS, SEVERAL_BLOCKS, SPEAKERS, Trait, find_traits
from segue.render.transcript import Transcript

Pass = Callable[[Draft], Draft]

# Declared where the target requires tools because the history has calls, and the request has none.
STUB_TOOL = Tool("unavailable_tool", "No tool can be called at present.", {"type": "object", "properties": {}})


def drop_stale_reasoning_and_regroup(draft: Draft) -> Draft:
    """Run `drop_stale_reasoning`, and the passes that depend on content if it dropped anything."""
    changed = drop_stale_reasoning(draft, _find_declared_tools)
    if changed is not draft:
        for step in (drop_empty, group_results, insert_fillers, merge_neighbours, fix_ends):
            changed = step(changed)
    return changed


def fit_ranges(draft: Draft) -> Draft:
    """Move numbers that the target rejects to the nearest value that it accepts."""
    for name, (least, most) in draft.constraints.option_ranges.items():
        value = getattr(draft.options, name)
        limit = None if value is None else move_into_range(name, value, least, most, draft.report, name)
        if limit != value:
            draft = draft.with_options(**{name: limit})
    return draft


def declare_tools(draft: Draft) -> Draft:
    """Declare the allowed tools, and a stub where the history has calls and the target requires a tool."""
    choice = draft.options.tool_choice
    tools = _find_allowed_tools(draft)
    if choice is not None and tools is not None:
        message = "tools that the tool choice does not allow dropped"
        draft.report.add("tools", message, fault="rendering", level="changed")
        draft = msgspec.structs.replace(draft, tools=tools)
        draft = draft.with_options(tool_choice=msgspec.structs.replace(choice, allowed=None))
    if not _needs_stub(draft, draft.tools):
        return draft
    why = "added a stub tool declaration: the history has tool calls but no tools are declared"
    draft.report.add("tools", why, fault="rendering")
    return msgspec.structs.replace(draft, tools=(*draft.tools, STUB_TOOL))


def _find_declared_tools(draft: Draft) -> tuple[Tool, ...]:
    """Return the tools that `declare_tools` declares."""
    tools = _find_allowed_tools(draft)
    tools = draft.tools if tools is None else tools
    return (*tools, STUB_TOOL) if _needs_stub(draft, tools) else tools


def _find_allowed_tools(draft: Draft) -> tuple[Tool, ...] | None:
    """Return the tools that the tool choice allows; None if it allows all, or the target can restrict them itself."""
    choice = draft.options.tool_choice
    if choice is None or choice.allowed is None or draft.is_same_api:
        return None
    return tuple(tool for tool in draft.tools if tool.name in choice.allowed)


def _needs_stub(draft: Draft, tools: tuple[Tool, ...]) -> bool:
    required = draft.constraints.tools_required
    if required == "never" or (required == "cross-api" and draft.is_same_api):
        return False
    # A hosted tool can be declared to its own provider only.
    if any(tool.kind != "hosted" or _is_from_api(tool, draft.constraints.api) for tool in tools):
        return False
    return any(calls_of(message) for message in draft.messages)


def _is_from_api(tool: Tool, api: str) -> bool:
    return tool.native is not None and tool.native.api == api


PASSES: tuple[Pass, ...] = (
    replace_compactions,
    drop_omitted,
    assign_speakers,
    choose_results,
    convert_orphans,
    convert_hosted,
    complete_calls,
    order_results,
    filter_reasoning,
    label_errors,
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
    fit_ranges,
    adjust_reasoning,
    insert_reasoning_placeholders,
    declare_tools,
)

_BESIDE_RESULTS: frozenset[Trait] = frozenset(("tool", kind) for kind in BLOCK_TYPES if kind is not ToolResponse)
_RESULTS_OUTSIDE: frozenset[Trait] = frozenset((speaker, ToolResponse) for speaker in SPEAKERS if speaker != "tool")
_REPLIES_OUTSIDE: frozenset[Trait] = frozenset(
    (speaker, kind) for speaker in SPEAKERS if speaker != "ai" for kind in (ToolCall, Thinking)
)
_EQUAL_NEIGHBOURS: frozenset[Trait] = frozenset((speaker, speaker) for speaker in SPEAKERS)


def _traits(*traits: Trait) -> frozenset[Trait]:
    return frozenset(traits)


TRAITS_NEEDED: dict[Pass, frozenset[Trait]] = {
    replace_compactions: _traits("omitted"),
    drop_omitted: _traits("omitted"),
    assign_speakers: _BESIDE_RESULTS
    | _RESULTS_OUTSIDE
    | _REPLIES_OUTSIDE
    | _traits(("ai", "ai"), ("tool", NO_BLOCKS), "hosted"),
    choose_results: _traits("duplicate or pending result"),
    convert_orphans: _traits("orphan", "earlier history"),
    convert_hosted: _traits("hosted", "nested call"),
    complete_calls: _traits("unanswered call", "hosted"),
    order_results: _traits(ToolResponse),
    filter_reasoning: _traits(Thinking),
    label_errors: _traits("failure"),
    place_media: _BESIDE_RESULTS | _RESULTS_OUTSIDE | _traits(Media, Opaque),
    place_system_text: _traits("system", "system text"),
    apply_response_format: _traits("response format"),
    drop_empty: _traits("blank"),
    group_results: _BESIDE_RESULTS
    | _traits(("tool", "tool"), ("tool", NO_BLOCKS), ("tool", SEVERAL_BLOCKS), ("ai", SEVERAL_BLOCKS)),
    insert_fillers: _traits(("tool", "human"), ("tool", "system"), ("ai", "system")),
    merge_neighbours: _EQUAL_NEIGHBOURS | _traits(("human", "tool"), ("tool", "human")),
    fix_ends: _traits("first or last message", "prefill"),
    drop_stale_reasoning_and_regroup: _traits(Thinking),
    fit_ranges: _traits("number options"),
    adjust_reasoning: _traits("reasoning options", "tool choice", "declared tools"),
    insert_reasoning_placeholders: _traits("ai", ToolCall),
    declare_tools: _traits("tool choice", ToolCall),
}
"""A pass has work only where one of its traits occurs; a pass that is not listed runs always."""

_USER_NEIGHBOURS: frozenset[Trait] = frozenset({("human", "tool"), ("tool", "human")})

TRAITS_ADDED: dict[Pass, frozenset[Trait]] = {
    filter_reasoning: _traits("first or last message"),
    label_errors: _traits(),
    place_system_text: _EQUAL_NEIGHBOURS | _USER_NEIGHBOURS | _traits("first or last message"),
    group_results: _EQUAL_NEIGHBOURS | _USER_NEIGHBOURS | _traits("first or last message"),
    merge_neighbours: _traits("first or last message"),
    fit_ranges: _traits(),
    insert_reasoning_placeholders: _traits(),
}
"""The traits that a pass may add, of those that later passes need. After any other pass, all are found again."""


def render(
    request: Request,
    constraints: Constraints,
    policy: Policy,
    report: Report,
    *,
    model: str | None = None,
    resolved_model: str | None = None,
    project_name: Callable[[str], str] = str,
    contents: Contents | None = None,
    earlier: BoundPrefix | None = None,
) -> Transcript:
    """Render a request for the target described by `constraints`. Decisions are added to the report.

    `project_name` maps a tool name to the target's. `resolved_model` is the recorded model that `model` is an alias of.
    `contents` are those of the request's messages, where the caller has them. `earlier` are the messages that these
    continue, where reasoning is bound to them.
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
        earlier=earlier,
    )
    contents = summarize(request.messages) if contents is None else contents
    if unpaired_ids := find_unpaired_ids(draft, contents):
        draft = msgspec.structs.replace(draft, unpaired_ids=unpaired_ids)
    report.seen.extend([call.id for call in contents.calls])
    draft = _run_passes(draft, contents)
    if draft.messages is not request.messages:
        contents = summarize(draft.messages)
    return Transcript(
        request=request,
        constraints=constraints,
        policy=policy,
        system=draft.system,
        messages=draft.messages,
        contents=contents,
        tools=draft.tools,
        options=draft.options,
        model=model,
        resolved_model=resolved_model,
        earlier=earlier,
        has_stale_reasoning=draft.has_stale_reasoning,
    )


def _run_passes(draft: Draft, contents: Contents) -> Draft:
    """Run the passes that have work; `contents` are those of the draft's messages."""
    traits = find_traits(draft, contents)
    report, stage = draft.report, draft.report.stage
    for number, step in enumerate(PASSES):
        needed = TRAITS_NEEDED.get(step)
        if needed is not None and needed.isdisjoint(traits):
            continue
        report.stage = (*stage, number)
        before, draft = draft, step(draft)
        if draft is not before:
            added = TRAITS_ADDED.get(step)
            if added is None:
                traits = find_traits(draft, summarize(draft.messages))
            else:
                traits |= added
    return draft
