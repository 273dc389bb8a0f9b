"""The passes about calls and results: who said what, which result counts, what is missing, and where results stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

import msgspec

from segue.canonical.blocks import Block, Message, State, Text, Thinking, ToolCall, ToolResponse, state_of
from segue.canonical.jsontext import write_text
from segue.canonical.pairing import same_content
from segue.render.demands import TEXTS
from segue.render.draft import Draft, regrouped, runs
from segue.render.reasoning import keeps_reasoning, unnamed

__all__ = ["complete", "hosted", "orphans", "place", "settle", "speakers"]

_RESULTS: frozenset[type] = frozenset({ToolResponse})
_OTHERS = frozenset({ToolCall, Thinking, ToolResponse})
_RANK: dict[State, int] = {"complete": 0, "error": 1, "cancelled": 2, "interrupted": 3}


def speakers(draft: Draft) -> Draft:
    """Calls and thinking belong to the model, results to the tools, whatever message they came in."""

    def parts(message: Message) -> list[Message]:
        if message.speaker == "ai":
            return regrouped(
                message, lambda block: "tool" if isinstance(block, ToolResponse) and not block.hosted else "ai"
            )
        return regrouped(message, lambda block: _speaker(block, message))

    made: list[Message] = []
    for message in _one_reply_a_turn(draft):
        if _is_of_one(message):
            made.append(message)
            continue
        pieces = parts(message)
        if len(pieces) > 1 or pieces[0] is not message:
            draft.report.add("moved", "calls, reasoning or results stood in a message of somebody else")
        made += pieces
    return draft.with_messages(made)


def _is_of_one(message: Message) -> bool:
    """Whether it is plain that who said a message said all that is in it."""
    kinds = frozenset(map(type, message.blocks))
    if message.speaker != "tool":
        return kinds.isdisjoint(_RESULTS if message.speaker == "ai" else _OTHERS)
    return kinds == _RESULTS and not any(block.hosted for block in message.blocks if isinstance(block, ToolResponse))


def _one_reply_a_turn(draft: Draft) -> Iterator[Message]:
    """The messages, with a reply that its wire wrote as several of one turn put together; at home they stay."""
    for run in runs(draft.messages, _of_one_turn):
        if len(run) == 1 or all(draft.at_home(message) for message in run):
            yield from run
            continue
        draft.report.add("moved", "messages that are one reply were put together")
        yield run[0].holding(tuple(block for message in run for block in message.blocks))


def _of_one_turn(last: Message, message: Message) -> bool:
    return last.speaker == message.speaker == "ai" and last.turn_key is not None and last.turn_key == message.turn_key


def _in_reply(block: Block) -> str:
    return "tool" if isinstance(block, ToolResponse) and not block.hosted else "ai"


def _speaker(block: Block, message: Message) -> str:
    if isinstance(block, ToolCall | Thinking) or (isinstance(block, ToolResponse) and block.hosted):
        return "ai"
    if isinstance(block, ToolResponse) or message.speaker == "tool":
        return "tool"
    return message.speaker


def hosted(draft: Draft) -> Draft:
    """What a provider ran itself stays as it is at home; abroad policy decides what becomes of it."""
    ran = any(_hosted_id(block) for message in draft.messages for block in message.blocks)
    abroad = _ran_abroad(draft) if ran else None
    if not abroad:
        return draft
    if draft.policy.hosted == "pair":
        results: dict[str, Block] = {}
        for message in draft.messages:
            for block in message.blocks:
                if isinstance(block, ToolResponse) and block.hosted:
                    results.setdefault(block.call_id, block)
        return draft.with_messages(
            part for message in draft.messages for part in _as_pairs(draft, message, abroad, results)
        )
    draft.report.add(
        "text" if draft.policy.hosted == "text" else "dropped", f"{len(abroad)} tools that the provider ran"
    )
    return draft.map_blocks(
        lambda _message, block: _hosted_text(draft, block) if _hosted_id(block) in abroad else [block]
    )


def _ran_abroad(draft: Draft) -> frozenset[str]:
    """The calls that a provider ran, less those that go back to it whole and with nobody's words in between."""
    found: set[str] = set()
    running: set[str] = set()
    for message in draft.messages:
        if message.speaker != "ai" and not all(isinstance(block, ToolResponse) for block in message.blocks):
            running.clear()
        kept = not _loses_its_name(draft, message)
        for block in message.blocks:
            run_id = _hosted_id(block)
            whole = _is_whole(draft, block) and kept
            # GEM-24
            whole = whole and re.fullmatch(draft.demands.own_hosted, _tool_of(block)) is not None
            # ANT-09: the result stands behind its call, before the user speaks again.
            late = draft.demands.adjacent and isinstance(block, ToolResponse) and run_id not in running
            if run_id and (not whole or late):
                found.add(run_id)
            running.add(run_id)
    return frozenset(found)


def _is_whole(draft: Draft, block: Block) -> bool:
    """Whether this goes back to who made it as it came."""
    return draft.at_home(block) and block.native is not None and block.native.intact


def _loses_its_name(draft: Draft, message: Message) -> bool:
    """OAI-RESP-08: what was made with reasoning can't go back by its id without it."""
    return draft.demands.reasoning_leads and not keeps_reasoning(draft, message)


def _hosted_id(block: Block) -> str:
    """The id of a call that a provider ran, from either side of it."""
    if isinstance(block, ToolCall) and block.kind == "hosted":
        return block.id
    return block.call_id if isinstance(block, ToolResponse) and block.hosted else ""


def _tool_of(block: Block) -> str:
    return (block.name or "") if isinstance(block, ToolCall | ToolResponse) else ""


def _as_pairs(draft: Draft, message: Message, abroad: frozenset[str], results: dict[str, Block]) -> list[Message]:
    """The message with its provider-run calls as calls like any other; cut after each result."""
    if not any(_hosted_id(block) in abroad for block in message.blocks):
        return [message]
    if _loses_its_name(draft, message):
        message = unnamed(message)
    blocks: list[Block] = []
    for block in message.blocks:
        if _hosted_id(block) not in abroad:
            blocks.append(block)
        elif isinstance(block, ToolCall):
            call = msgspec.structs.replace(block, kind="function", native=None)
            draft.report.add("text", "a tool run by the provider is told as a call", call_id=call.id, subject=call.name)
            blocks.append(call)
            if call.id not in results:
                blocks.append(call.respond(TEXTS.undisclosed, synthetic="output not disclosed"))
        elif isinstance(block, ToolResponse) and results[block.call_id] is block:
            blocks.append(msgspec.structs.replace(block, hosted=False, native=None))
        elif isinstance(block, ToolResponse):
            draft.report.add("dedupe", "a repeated result: left out", call_id=block.call_id, subject=_words(block))
    return regrouped(message.holding(tuple(blocks)), _in_reply)


def _hosted_text(draft: Draft, block: Block) -> list[Block]:
    if draft.policy.hosted == "drop":
        return []
    if isinstance(block, ToolCall):
        arguments = block.arguments_text or write_text(block.arguments)
        return [Text(TEXTS.hosted_call.format(tool=draft.spell(block.name), arguments=arguments))]
    if isinstance(block, ToolResponse):
        return _told(block, TEXTS.hosted_result.format(tool=draft.tool_name(block), content="").rstrip())
    return [block]


def _told(response: ToolResponse, label: str) -> list[Block]:
    """A result as words: the label and the text, then what is not text."""
    content = response.content or ()
    words = [block.text for block in content if isinstance(block, Text)]
    if response.structured is not msgspec.UNSET:
        words.append(write_text(response.structured))
    return [Text("\n".join([label, *words])), *(block for block in content if not isinstance(block, Text))]


def settle(draft: Draft) -> Draft:
    """One result a call: the best of several, the first among equals. Partial output is no result."""
    chosen: dict[str, ToolResponse] = {}
    crowded: set[str] = set()
    for response in _client_responses(draft):
        held = chosen.get(response.call_id)
        if held is None:
            chosen[response.call_id] = response
        if held is not None or state_of(response) == "pending":
            crowded.add(response.call_id)
        if held is not None and _rank(response) < _rank(held):
            chosen[response.call_id] = response
    if not crowded:
        return draft

    def keep(_message: Message, block: Block) -> list[Block]:
        if not draft.pairs_result(block) or block.call_id not in crowded:
            return [block]
        best = chosen[block.call_id]
        if block is best and state_of(block) != "pending":
            return [block]
        why = "partial output" if block is best else _why_not(block, best)
        draft.report.add("dedupe", f"{why}: left out", call_id=block.call_id, subject=_words(block))
        return []

    settled = draft.map_blocks(keep)
    return settled.with_messages(part for message in settled.messages for part in _tidied(message))


def _tidied(message: Message) -> list[Message]:
    """A tool message without results is a human's, or nothing."""
    if message.speaker != "tool" or any(isinstance(block, ToolResponse) for block in message.blocks):
        return [message]
    return [message.holding(message.blocks, speaker="human")] if message.blocks else []


def _words(response: ToolResponse) -> str | None:
    """What a left-out result said: it is in the report, since it is not in the body."""
    told = _told(response, "")[0]
    return told.text.strip() if isinstance(told, Text) else None


def _rank(response: ToolResponse) -> int:
    return _RANK.get(state_of(response), len(_RANK))


def _why_not(block: ToolResponse, best: ToolResponse) -> str:
    if same_content(block, best):
        return "a repeated result"
    return f"another result, {state_of(block)}, beside one that is {state_of(best)}"


def _client_responses(draft: Draft) -> list[ToolResponse]:
    return [
        block
        for message in draft.messages
        for block in message.blocks
        if isinstance(block, ToolResponse) and draft.pairs_result(block)
    ]


def orphans(draft: Draft) -> Draft:
    """A result whose call is not here is told as text, where it stood."""
    called = {block.id for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)}
    elsewhere: frozenset[str] = frozenset()
    if draft.request.continues is not None and draft.home:
        elsewhere = _answers_elsewhere(draft)
    elif draft.request.continues is not None:
        draft.report.add("dropped", f"this body goes on from {draft.request.continues}, which it does not hold")
    given = [block for message in draft.messages for block in message.blocks if isinstance(block, ToolResponse)]
    lost = {response.call_id for response in given} - called - draft.loose - elsewhere
    if not lost:
        return draft

    def is_orphan(block: Block) -> bool:
        return isinstance(block, ToolResponse) and block.call_id in lost

    messages: list[Message] = []
    for message in draft.messages:
        found = any(is_orphan(block) for block in message.blocks)
        messages += _with_orphans_told(draft, message, is_orphan) if found else [message]
    return draft.with_messages(messages)


def _answers_elsewhere(draft: Draft) -> frozenset[str]:
    """Results of calls that the provider may hold: each that bears an id, the first of those that bear the same."""
    found: dict[tuple[str, bool], str] = {}
    for message in draft.messages:
        for block in message.blocks:
            raw_id = block.origin.raw_id if isinstance(block, ToolResponse) else None
            if isinstance(block, ToolResponse) and raw_id and re.fullmatch(draft.demands.own_id, raw_id):
                found.setdefault((raw_id, block.hosted), block.call_id)
    return frozenset(found.values())


def _with_orphans_told(draft: Draft, message: Message, is_orphan: Callable[[Block], bool]) -> list[Message]:
    """The message with the results that have a call, then everybody's words in the order in which they stood."""
    results: list[Block] = []
    words: list[Block] = []
    told: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse) and is_orphan(block):
            (told if message.speaker == "ai" else words).extend(_orphan(draft, block))
        else:
            (results if isinstance(block, ToolResponse) and message.speaker != "ai" else words).append(block)
    speaker = "tool" if results else "ai" if message.speaker == "ai" else "human"
    parts = [message.holding((*results, *words), speaker=speaker)] if results or words else []
    return [*parts, Message("human", tuple(told))] if told else parts


def _orphan(draft: Draft, response: ToolResponse) -> list[Block]:
    tool = response.name or "a tool"
    if draft.policy.orphans == "drop":
        draft.report.add("orphan", "a result without a call: left out", call_id=response.call_id, subject=tool)
        return []
    draft.report.add("orphan", "a result without a call: told as text", call_id=response.call_id, subject=tool)
    return _told(response, TEXTS.orphan.format(tool=draft.tool_name(response)))


def complete(draft: Draft) -> Draft:
    """Every call gets a result: a made-up one where none was recorded."""
    answered = {response.call_id for response in _client_responses(draft)}
    if all(call.id in answered for message in draft.messages for call in _client_calls(draft, message)):
        return draft
    last = max((i for i, message in enumerate(draft.messages) if message.speaker != "tool"), default=-1)
    messages: list[Message] = []
    for position, message in enumerate(draft.messages):
        messages.append(message)
        missing = [
            call
            for call in _client_calls(draft, message)
            if call.id not in answered and (call.awaited or not _is_whole(draft, call))
        ]
        if not missing or (draft.policy.pending == "keep" and position == last):
            continue
        messages.append(Message("tool", tuple(_made_up(draft, call) for call in missing), turn_key=message.turn_key))
    return draft.with_messages(messages)


def _made_up(draft: Draft, call: ToolCall) -> ToolResponse:
    why = "interrupted: no result was recorded"
    draft.report.add("synthetic", why, call_id=call.id, subject=call.name)
    return call.respond(TEXTS.interrupted, error=True, outcome="interrupted", synthetic=why)


def place(draft: Draft) -> Draft:
    """Results stand right behind their calls. Turns that are lawful as they stand are not touched."""
    loose: dict[int, list[ToolCall]] = {}
    responses = {response.call_id: response for response in _client_responses(draft)}
    if _all_in_place(draft, responses.keys()):
        return draft
    places = {} if draft.demands.adjacent else _places(draft)
    for start, stop in _reply_runs(draft):
        asked = {
            position: calls
            for position in range(start, stop)
            if (calls := [call for call in _client_calls(draft, draft.messages[position]) if call.id in responses])
        }
        expected = [call.id for calls in asked.values() for call in calls]
        if expected and not _stands_well(draft, start, stop, expected, places):
            loose.update(asked)
    if not loose:
        return draft
    moving = {call.id for calls in loose.values() for call in calls}
    messages: list[Message] = []
    for position, message in enumerate(draft.messages):
        messages.extend(_without(message, moving))
        if position in loose:
            found = tuple(responses[call.id] for call in loose[position])
            if _moved(draft, position, found):
                draft.report.add("reordered", "results were brought to their calls", call_id=found[0].call_id)
            messages.append(Message("tool", found, turn_key=message.turn_key))
    return draft.with_messages(messages)


def _all_in_place(draft: Draft, answered: Collection[str]) -> bool:
    """Whether each reply is at once followed by exactly its results, in order."""
    waiting: list[str] = []
    for message in draft.messages:
        if message.speaker == "tool" and waiting:
            found = [block.call_id for block in message.blocks if isinstance(block, ToolResponse)]
            heads = message.blocks[: len(found)]
            if found != waiting[: len(found)] or not all(isinstance(block, ToolResponse) for block in heads):
                return False
            del waiting[: len(found)]
            if waiting and len(found) < len(message.blocks):
                return False
        elif waiting or message.speaker == "tool":
            return False
        elif message.speaker == "ai":
            waiting = [call.id for call in _client_calls(draft, message) if call.id in answered]
    return not waiting


def _client_calls(draft: Draft, message: Message) -> list[ToolCall]:
    return [block for block in message.blocks if isinstance(block, ToolCall) and draft.pairs_call(block)]


def _reply_runs(draft: Draft) -> Iterator[tuple[int, int]]:
    """Replies that count as one: neighbours where the target merges them and they are at home, else each alone."""
    position = 0
    while position < len(draft.messages):
        message = draft.messages[position]
        stop = position + 1
        if message.speaker == "ai":
            while (
                draft.demands.alternation == "merged"
                and draft.demands.results != "each"
                and stop < len(draft.messages)
                and draft.messages[stop].speaker == "ai"
                and draft.at_home(draft.messages[stop])
                and draft.at_home(message)
            ):
                stop += 1
            yield position, stop
        position = stop


def _places(draft: Draft) -> dict[str, int]:
    """For each call the message that its result stands in."""
    return {
        block.call_id: position
        for position, message in enumerate(draft.messages)
        for block in message.blocks
        if draft.pairs_result(block)
    }


def _stands_well(draft: Draft, start: int, stop: int, expected: list[str], places: dict[str, int]) -> bool:
    """Whether exactly these results, each once, are the first thing after the reply, or may come later at home."""
    found, end = _head(draft, stop)
    if found == expected:
        return True
    # OAI-RESP-06
    if places and draft.at_home(draft.messages[start]):
        stood = [places[call_id] for call_id in expected]
        return all(stop <= at < end or draft.at_home(draft.messages[at]) for at in stood)
    home = all(draft.at_home(message) for message in draft.messages[start:end])
    return home and len(found) == len(expected) and set(found) == set(expected)


def _head(draft: Draft, start: int) -> tuple[list[str], int]:
    """The calls whose results stand here before anything else, and where that ends."""
    found: list[str] = []
    for position in range(start, len(draft.messages)):
        message = draft.messages[position]
        if message.speaker != "tool":
            return found, position
        heads = [block.call_id for block in message.blocks if isinstance(block, ToolResponse)]
        if not all(isinstance(block, ToolResponse) for block in message.blocks[: len(heads)]):
            return [], position
        found += heads
        if len(heads) < len(message.blocks):
            return found, position + 1
    return found, len(draft.messages)


def _moved(draft: Draft, position: int, found: tuple[ToolResponse, ...]) -> bool:
    """Whether a recorded result changes its place, and not only a made-up one comes between."""
    made_up = {response.call_id for response in found if response.synthetic is not None}
    stood, _ = _head(draft, position + 1)
    return [i for i in stood if i not in made_up] != [r.call_id for r in found if r.call_id not in made_up]


def _without(message: Message, moving: set[str]) -> list[Message]:
    """The message less its moving results; nothing where nothing is left."""
    kept = tuple(b for b in message.blocks if not (isinstance(b, ToolResponse) and b.call_id in moving))
    if len(kept) == len(message.blocks):
        return [message]
    if not kept:
        return []
    speaker = "tool" if any(isinstance(block, ToolResponse) for block in kept) else "human"
    return [message.holding(kept, speaker=speaker if message.speaker == "tool" else None)]
