"""Strategies for scenarios: valid ones that a given API accepts, and broken ones whose correct pairing is still known.

A fault is only generated where design §3 recovers the intended pairing: repeated ids have results before they come
again, calls without ids have results in order, and so on. `chaos` has no such limits.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.properties.ids import MISSING, STYLES, UNIQUE, Style
from tests.properties.scenario import OWN, Call, Event, Picture, Reply, Result, Scenario, System, Tool, UserText
from tests.strategies import cached_sampled_from

PLAIN = ("read_file", "glob", "get_weather", "Bash")
WEIRD = ("ns.tool", "a.b", "a b", "a_b", "with two spaces", "n" * 80, f"{'n' * 79}m", "naïve/ünicode:tool", "0")
WEIRD_NAMES, PLAIN_NAMES = (
    st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True) for names in (WEIRD, PLAIN)
)
EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"n": 1, "x": 1.0},
    {"deep": {"list": [1, [2.5, None, True], {}]}},
    {"text": 'quote " and \\ and \n and ünï 🎈'},
    {"big": 2**53 + 1, "tiny": 1e-9},
    {"": None},
)
MODELS = {
    "openai-chat": ("gpt-4.1", "gpt-5", "gpt-4o-mini"),
    "openai-responses": ("gpt-5.6-terra", "gpt-5", "gpt-4.1"),
    "azure-foundry": ("gpt-5", "gpt-4.1"),
    "anthropic": ("claude-sonnet-4-5", "claude-3-5-sonnet-20241022", "claude-opus-4-6", "claude-fable-5-1"),
    "gemini": ("gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.8-flash"),
    "bedrock": (
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "amazon.nova-pro-v1:0",
        "meta.llama3-3-70b-instruct-v1:0",
        "mistral.mistral-large-2407-v1:0",
    ),
    "kimi": ("kimi-k2-0905-preview", "kimi-k2-thinking", "kimi-k3"),
    "mistral": ("mistral-medium-latest", "magistral-medium-2509", "mistral-small-2603"),
    "deepseek": ("deepseek-chat", "deepseek-reasoner", "deepseek-v4-pro"),
    "qwen": ("qwen-plus", "qwen3.5-plus", "qwq-plus"),
}


class ScenarioGenerator:
    """Generates one scenario; each `draw` decides one thing."""

    def __init__(self, draw: Any, valid_for: str | None) -> None:
        self.draw = draw
        self.api = valid_for
        self.valid = valid_for is not None
        self.marker_count = 0
        self.turn = 0
        self.total = 0
        self.events: list[Event] = []
        self.late: list[Result] = []
        self.scenario = Scenario(self.events)

    def chance(self, of_ten: int) -> bool:
        return self.draw(st.integers(0, 9)) >= 10 - of_ten

    def fault(self, of_ten: int = 1) -> bool:
        return not self.valid and self.chance(of_ten)

    def new_marker(self) -> str:
        self.marker_count += 1
        return f"w{self.marker_count:04}q"

    def pick(self, *values: Any) -> Any:
        return self.draw(cached_sampled_from(values))

    # ------------------------------------------------------------------------------------------------- the scenario

    def generate(self) -> Scenario:
        self.style: Style = UNIQUE[0] if self.valid else self.draw(cached_sampled_from(STYLES))
        self.scenario.style = self.style.name
        weird = not self.valid and self.chance(3)
        self.names = self.draw(WEIRD_NAMES if weird else PLAIN_NAMES)
        # AZF-06: of reasoning nothing goes back there.
        self.scenario.thinking_on = self.chance(3) and self.api != "azure-foundry"
        self.custom = self.chance(2) and self.api in (None, "openai-chat", "openai-responses", "azure-foundry")
        self.legacy = not self.valid and self.style.name == "own" and self.chance(1)
        if self.chance(5):
            self.events.extend(System(f"Be brief {self.new_marker()}.") for _ in range(self.pick(1, 1, 2)))
        self.add_opening()
        for _ in range(self.pick(1, 1, 2, 3)):
            self.add_exchange()
        self.add_ending()
        if self.chance(8):
            kinds = {call.tool: call.kind for call in self.scenario.calls}
            self.scenario.tools = [
                Tool(name, "custom" if kinds.get(name) == "custom" else "function") for name in self.names
            ]
        return self.scenario

    def add_opening(self) -> None:
        if self.api in ("kimi", "gemini", "bedrock"):
            return
        if self.fault() and self.style.has_ids:
            self.add_orphan()
        if self.chance(1):
            self.events.append(self.reply(0))
        if self.fault():
            self.add_calls()

    def add_exchange(self) -> None:
        self.add_user()
        for _ in range(self.pick(0, 1, 1, 2)):
            self.add_calls()
        if self.chance(4):
            self.events.append(self.reply(0))
        if self.fault():
            self.events.append(self.reply(0))

    def add_ending(self) -> None:
        self.events.extend(self.late)
        self.late = []
        open_end = self.valid and not isinstance(self.events[-1], UserText | Result)
        if open_end or self.chance(3):
            self.add_user()

    def add_user(self) -> None:
        # MIS-07: Mistral needs a reply between results and text; MIS-09: and no system text after either. BED-07: so
        # do some models behind Converse.
        if self.api in ("mistral", "bedrock") and self.events and isinstance(self.events[-1], Result):
            self.events.append(self.reply(0))
        behind = self.api == "mistral" and self.events and isinstance(self.events[-1], Reply)
        if self.chance(1) and not behind:
            self.events.append(System(f"From now on {self.new_marker()}.", developer=self.chance(5)))
        for _ in range(2 if self.chance(1) else 1):
            texts = tuple(f"Please {self.new_marker()}." for _ in range(self.pick(1, 1, 1, 2)))
            if self.fault():
                texts = self.pick(("",), (" ",), (*texts, ""), ("", *texts))
            picture = self.picture() if self.chance(1) else None
            self.events.append(UserText(texts, picture, joined=self.chance(5), as_list=self.chance(3)))
        if self.fault() and self.style.has_ids:
            self.add_orphan()
        self.add_late_results()

    def add_late_results(self) -> None:
        """Adds late results after the next user text; where ids are unique some wait longer."""
        waiting: list[Result] = []
        for result in self.late:
            if self.style.unique and self.chance(2) and isinstance(self.events[-1], UserText):
                waiting.append(result)
            else:
                self.events.append(result)
        self.late = waiting

    # ------------------------------------------------------------------------------------------ replies and calls

    def reply(self, calls: int) -> Reply:
        made = tuple(self.call(index) for index in range(calls))
        text = f"Answer {self.new_marker()}." if not made or self.chance(4) else None
        if text is None and self.chance(1) and self.api != "anthropic":
            text = ""
        if not made and self.fault():
            text = self.pick("", None, " ")
        thinks = self.scenario.thinking_on if self.valid or not self.chance(2) else self.chance(5)
        thought = f"Let me think {self.new_marker()}." if thinks else None
        return Reply(made, text, thought, text_first=not self.chance(1))

    def call(self, index: int) -> Call:
        marker, tool = self.new_marker(), self.pick(*self.names)
        raw = self.style.id(self.turn, index, self.total, tool)
        self.total += 1
        if self.legacy:
            return Call(marker, tool, arguments={"q": marker}, kind="legacy")
        if self.custom and tool == self.names[0]:
            return Call(marker, tool, raw, text=f"free text {marker}\n*** end", kind="custom")
        if self.fault():
            broken = self.pick(
                f'{{"q": "{marker}"', f"{marker}", f'["{marker}", 1]', f'"{marker}"', f'{{"q": NaN, "r": "{marker}"}}'
            )
            return Call(marker, tool, raw, text=broken)
        return Call(marker, tool, raw, {"q": marker, **self.pick(*EXTRAS)})

    def add_calls(self) -> None:
        """Adds a reply with calls, and their results."""
        if not self.style.unique:
            self.events.extend(self.late)  # before their ids come again
            self.late = []
        reply = self.reply(1 if self.legacy else self.pick(1, 1, 2, 3, 5))
        self.turn += 1
        results = [self.result(call) for call in reply.calls]
        for call, result in zip(reply.calls, results, strict=True):
            self.scenario.results[call.marker] = result
        answered = self.drop_results(reply, results)
        if self.fault() and self.style.unique and self.style.has_ids and answered and not self.legacy:
            self.events.append(answered.pop(0))
        self.events.append(reply)
        if self.fault() and answered and not self.legacy:
            cut = self.draw(st.integers(0, len(answered) - 1))
            self.late.extend(answered[cut:])
            del answered[cut:]
        if self.style.distinct and not self.legacy and self.chance(2):
            answered = self.draw(st.permutations(answered))
        self.events.extend(answered)
        if answered and self.style.distinct and self.style.has_ids and not self.legacy and self.fault():
            self.add_duplicate(self.pick(*answered))

    def drop_results(self, reply: Reply, results: list[Result]) -> list[Result]:
        if not self.fault(2) or self.legacy:
            return results
        if self.style.distinct:
            kept = [result for result in results if self.chance(5)]
        else:
            kept = results[: self.draw(st.integers(0, len(results) - 1))]
        given = {result.call for result in kept}
        for call in reply.calls:
            if call.marker not in given:
                self.scenario.results[call.marker] = None
        return kept

    def result(self, call: Call) -> Result:
        text = self.pick(
            f"Found {self.new_marker()}",
            f'{{"ok": true, "w": "{self.new_marker()}"}}',
            f"{self.new_marker()}\n\n  ",
            "",
        )
        error = self.chance(1) and (bool(text) or self.api != "anthropic")
        picture_allowed = (
            self.api in (None, "anthropic", "openai-responses", "azure-foundry")
            and not (self.valid and error)
            and not self.legacy
        )
        picture = self.picture() if picture_allowed and self.chance(1) else None
        form = "parts" if text and self.chance(2) else "text"
        if not text and not picture and self.chance(5):
            form = "omitted" if not self.valid or self.api == "anthropic" else "text"
        raw = call.id if call.id is OWN else self.style.result_id(call.id, call.marker)
        return Result(call.marker, text, raw, call.tool, error, picture, form, call.kind)

    def add_duplicate(self, result: Result) -> None:
        if result.error:
            return
        if self.chance(5):
            again = Result(result.call, f"Other {self.new_marker()}", result.id, result.tool)
            self.scenario.discarded_results.append(again)
        else:
            again = result
        if self.style.unique and self.chance(3):
            self.late.append(again)
        else:
            self.events.append(again)

    def add_orphan(self) -> None:
        result = Result(None, f"Lost {self.new_marker()}", f"nobody_{self.marker_count}", self.pick(*self.names))
        self.scenario.orphans.append(result)
        self.events.append(result)

    def picture(self) -> Picture:
        return Picture(self.new_marker(), self.chance(6))


@st.composite
def scenarios(draw: Any) -> Scenario:
    """Any scenario with known pairing, valid or broken."""
    return ScenarioGenerator(draw, None).generate()


@st.composite
def valid_scenarios(draw: Any, api: str) -> Scenario:
    """Scenarios that this API accepts unchanged."""
    return ScenarioGenerator(draw, api).generate()


def source_models(scenario: Scenario, api: str) -> tuple[str, ...]:
    """Possible source models of the scenario. K3 pairs by position, so an orphan would match an open call."""
    careful = bool(scenario.orphans) or scenario.style in {style.name for style in MISSING}
    return tuple(model for model in MODELS.get(api, ()) if not (careful and model == "kimi-k3"))
