"""Any session: with any replies, tools and interrupts, no request is rejected and each call has one outcome."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from segue._conversation import Conversation
from segue.runtime.events import Event, ExchangeEnded
from segue.runtime.tool_types import Tool, ToolError
from tests.budget import examples
from tests.runtime.harness import APIS, ECHO, FAIL, TEXT_PARAMETERS, Harness, endpoint_of, open_harness
from tests.runtime.session_checks import LogWithChildren, find_invalid_bodies, find_problems
from tests.strategies import cached_sampled_from


async def _never(arguments: Any, context: Any) -> str:
    await asyncio.Event().wait()
    return "never"


def _stubborn(arguments: Any, context: Any) -> str:
    """Ends with a late result when it is cancelled."""
    context.cancelled.wait(100)
    return "after all"


def _raises(arguments: Any, context: Any) -> str:
    raise ToolError("it can't be done") if arguments["words"] == "one" else RuntimeError("a fault")


TOOLS = (
    ECHO,
    FAIL,
    Tool("never", "Never ends.", TEXT_PARAMETERS, _never, blocking=False, timeout=0.01),
    Tool("stubborn", "Ends too late.", TEXT_PARAMETERS, _stubborn, timeout=0.01),
    Tool("raises", "Goes wrong.", TEXT_PARAMETERS, _raises),
)
NAMES = [*(tool.name for tool in TOOLS), "nobody"]


class SessionPlan(NamedTuple):
    """What models say, by API; to whom each exchange goes; and what is done at which event: a switch, or a cancel."""

    scripts: Mapping[str, str]
    exchanges: tuple[str, ...]
    actions: Mapping[int, str]
    has_reasoning: bool


def _call(name: str, words: str, whole: bool) -> str:
    text = json.dumps({"words": words}, ensure_ascii=False)
    return f"call   {name} {text if whole else text[:-3]}"


MARKER = cached_sampled_from(["one", "two", "naïve 💡", '"quoted"', ""])
CALL = st.builds(_call, cached_sampled_from(NAMES), MARKER, cached_sampled_from([True, True, True, True, False]))
TEXT_LINE = st.builds(
    "say    {}".format, cached_sampled_from(["I listen.", "Done: {echo}.", "So be it,\n       and so it is.", ""])
)
REASONING_LINE = st.just("think  Let me see.")
END = cached_sampled_from(
    ["", "", "", "", "end    length", "end    pause", "end    filter", "cut", "cut    reset", "error  503 Busy."]
)


@st.composite
def turns(draw: st.DrawFn) -> str:
    """One reply: thinking, words and calls in any number, then how it ends."""
    if draw(cached_sampled_from([False] * 9 + [True])):
        return draw(
            cached_sampled_from(["error  500 Boom.", "error  503 Busy.", "error  429 Slow down. (retry after 0)"])
        )
    steps = [
        *draw(st.lists(REASONING_LINE, max_size=1)),
        *draw(st.lists(TEXT_LINE, max_size=1)),
        *draw(st.lists(CALL, max_size=4)),
    ]
    return "\n".join([*(steps or ["say    Yes."]), *filter(None, [draw(END)])])


@st.composite
def session_plans(draw: st.DrawFn) -> SessionPlan:
    apis = draw(st.lists(cached_sampled_from(APIS), min_size=1, max_size=3, unique=True))
    scripts = {api: "\n---\n".join(draw(st.lists(turns(), min_size=1, max_size=5))) for api in apis}
    exchanges = tuple(draw(st.lists(cached_sampled_from(apis), min_size=1, max_size=3)))
    actions = draw(
        st.dictionaries(
            st.integers(0, 40), cached_sampled_from([*apis, "cancel", "cancel soon", "cancel task"]), max_size=4
        )
    )
    return SessionPlan(scripts, exchanges, actions, draw(st.booleans()))


class EventActor:
    """Does at each event what is to be done there."""

    def __init__(self, actions: Mapping[int, str]) -> None:
        self.actions = actions
        self.count = 0
        self.stage: Harness | None = None
        self.asking: asyncio.Task[ExchangeEnded] | None = None

    def __call__(self, event: Event) -> None:
        deed = self.actions.get(self.count)
        self.count += 1
        assert self.stage is not None
        assert self.asking is not None
        match deed:
            case None:
                pass
            case "cancel":
                self.stage.session.cancel()
            case "cancel soon":
                asyncio.get_running_loop().call_soon(self.stage.session.cancel)
            case "cancel task":
                self.asking.cancel()
            case api:
                self.stage.session.switch(endpoint_of(self.stage.providers[api]))


async def run_plan(play: SessionPlan, folder: Path) -> None:
    actor = EventActor(play.actions)
    book = LogWithChildren(Conversation(reasoning={"effort": "low"} if play.has_reasoning else None))
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    async with open_harness(dict(play.scripts), folder, log=book, tools=TOOLS, listen=actor) as harness:
        actor.stage = harness
        for api in play.exchanges:
            harness.session.switch(endpoint_of(harness.providers[api]))
            before = len(harness.events_of(ExchangeEnded))
            actor.asking = asyncio.create_task(harness.session.ask("Go."))
            await asyncio.wait((actor.asking,))
            assert actor.asking.cancelled() or actor.asking.result().outcome in ("answered", "cancelled", "failed")
            assert len(harness.events_of(ExchangeEnded)) == before + 1
            assert find_problems(harness) == []
        actor.actions = {}
        # Whatever it was, it goes on.
        for api in play.scripts:
            harness.session.switch(endpoint_of(harness.providers[api]))
            await harness.session.ask("And?")
            assert find_problems(harness) == []
        assert find_invalid_bodies(book) == []
        assert faults == []


@settings(examples(0.5), suppress_health_check=[HealthCheck.too_slow])
@given(session_plans())
def test_whatever_happens_in_a_session(play: SessionPlan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_plan(play, Path(folder)))
