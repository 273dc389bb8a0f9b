"""Theory of operation: how a canonical history becomes one that a target takes.

A history is what happened, and what happened is often not what an API lets one say: calls without results, results
without calls, results late, twice or out of order, reasoning signed by someone else, a system message in the middle, an
empty text. The passes below each remove one kind of trouble. Each is a pure function from draft to draft, does nothing
where there is no trouble, and is idempotent; run again, the whole list changes nothing. What a target wants they read
from its `Demands` and never from its name; a message that came from the target itself and is lawful is not touched.

They stand in this order, because each relies on what was settled before:

0.  `silent`       What is no part of the conversation, out of the way of all that looks at neighbours.
1.  `speakers`     Every block in a message of who said it. Later passes need not look for calls in a user's message.
2.  `settle`       At most one result for each call.
3.  `orphans`      Results without a call become text. Now every result left has a call.
4.  `hosted`       Tools that a provider ran become calls and results like any other where they go abroad, and where
                   somebody's words (an orphan's, too) have come between the two.
5.  `complete`     Calls without a result get one. After `settle`, which may have taken a partial one away; now every
                   call has exactly one result.
6.  `place`        Results behind their calls. Only possible when pairs are complete, and needed before anything looks
                   at neighbours.
7.  `reasoning`    Whose thinking stays. Before `empties`, since a message may have held nothing else.
8.  `errors`, `media`   What stands inside results and messages. After `place`: a picture goes after all results of its
                   turn.
9.  `system_text`  After `place`, so that a system message can't be caught between a call and its result.
    `answer_form`  What must be said of the answer's form, at the end of the system text that now stands in its place.
10. `empties`      After all that takes content out, before all that counts neighbours.
11. `grouping`, `bridges`, `merging`, `captions`, `ends`   The roles, from the inside out: results in messages, what
                   may follow what, neighbours of one role, which may bring words to media that need some, the ends.
12. `bound`        Reasoning that is bound to its prefix can only be judged when the prefix is final. If it has to go,
                   what depends on content runs once more.
13. `open_exchange` What is asked of reasoning, with the final messages in view.
14. `placeholders` Last among blocks: a placeholder is not reasoning and must not be judged as such, and where
                   reasoning was just switched off none is needed.
15. `declared`     The tools, for the calls that are left.
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

# Declared where a target wants tools because the history has calls, and the request brought none.
STUB_TOOL = Tool("unavailable_tool", "No tool can be called at present.", {"type": "object", "properties": {}})


def rebound(draft: Draft) -> Draft:
    """`bound`, and what has to follow if it took anything out."""
    made = bound(draft)
    if made is not draft:
        for step in (empties, grouping, bridges, merging, ends):
            made = step(made)
    return made


def declared(draft: Draft) -> Draft:
    """The tools that may be called, and one where the history has calls and the target wants one declared."""
    choice = draft.options.tool_choice
    if choice is not None and choice.allowed is not None and not draft.home:
        tools = tuple(tool for tool in draft.tools if tool.name in choice.allowed)
        draft.report.add("tools", "only the tools that may be called are declared", fault="rendering")
        draft = msgspec.structs.replace(draft, tools=tools)
        draft = draft.with_options(tool_choice=msgspec.structs.replace(choice, allowed=None))
    wanted = draft.demands.tools_wanted
    if wanted == "never" or (wanted == "abroad" and draft.home):
        return draft
    # A tool that a provider runs can be declared to no other.
    if any(tool.kind != "hosted" or _is_of(tool, draft.demands.api) for tool in draft.tools):
        return draft
    if not any(calls_of(message) for message in draft.messages):
        return draft
    draft.report.add("tools", "the history has calls but no tool is declared: one stub is", fault="rendering")
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
    """What may be said of this request to the target that `demands` describes. Decisions go into the report.

    `spell` gives the name that the target knows a tool by.
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
