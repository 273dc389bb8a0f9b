"""Strategies for stories: clean ones that a given API accepts, and broken ones whose truth is still known.

A fault is only told where design §3 recovers what its author meant: ids that repeat are answered before they come
again, calls without ids are answered in order, and so on. `chaos` knows no such care.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.drawing import sampled

from .ids import MISSING, STYLES, UNIQUE, Style
from .story import OWN, Call, Event, Picture, Reply, Result, Say, Story, System, Tool

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


class Teller:
    """Tells one story; each `draw` decides one thing."""

    def __init__(self, draw: Any, lawful_for: str | None) -> None:
        self.draw = draw
        self.api = lawful_for
        self.lawful = lawful_for is not None
        self.words = 0
        self.turn = 0
        self.total = 0
        self.events: list[Event] = []
        self.late: list[Result] = []
        self.story = Story(self.events)

    def chance(self, of_ten: int) -> bool:
        return self.draw(st.integers(0, 9)) >= 10 - of_ten

    def fault(self, of_ten: int = 1) -> bool:
        return not self.lawful and self.chance(of_ten)

    def word(self) -> str:
        self.words += 1
        return f"w{self.words:04}q"

    def pick(self, *values: Any) -> Any:
        return self.draw(sampled(values))

    # ------------------------------------------------------------------------------------------------- the story

    def tell(self) -> Story:
        self.style: Style = UNIQUE[0] if self.lawful else self.draw(sampled(STYLES))
        self.story.style = self.style.name
        weird = not self.lawful and self.chance(3)
        self.names = self.draw(WEIRD_NAMES if weird else PLAIN_NAMES)
        # AZF-06: of reasoning nothing goes back there.
        self.story.thinking_on = self.chance(3) and self.api != "azure-foundry"
        self.custom = self.chance(2) and self.api in (None, "openai-chat", "openai-responses", "azure-foundry")
        self.legacy = not self.lawful and self.style.name == "own" and self.chance(1)
        if self.chance(5):
            self.events.extend(System(f"Be brief {self.word()}.") for _ in range(self.pick(1, 1, 2)))
        self.opening()
        for _ in range(self.pick(1, 1, 2, 3)):
            self.exchange()
        self.ending()
        if self.chance(8):
            kinds = {call.tool: call.kind for call in self.story.calls}
            self.story.tools = [
                Tool(name, "custom" if kinds.get(name) == "custom" else "function") for name in self.names
            ]
        return self.story

    def opening(self) -> None:
        if self.api in ("kimi", "gemini", "bedrock"):
            return
        if self.fault() and self.style.told:
            self.orphan()
        if self.chance(1):
            self.events.append(self.reply(0))
        if self.fault():
            self.called()

    def exchange(self) -> None:
        self.say()
        for _ in range(self.pick(0, 1, 1, 2)):
            self.called()
        if self.chance(4):
            self.events.append(self.reply(0))
        if self.fault():
            self.events.append(self.reply(0))

    def ending(self) -> None:
        self.events.extend(self.late)
        self.late = []
        open_end = self.lawful and not isinstance(self.events[-1], Say | Result)
        if open_end or self.chance(3):
            self.say()

    def say(self) -> None:
        # MIS-07: Mistral wants a reply between results and words; MIS-09: and no system text behind either. BED-07: so
        # do some models behind Converse.
        if self.api in ("mistral", "bedrock") and self.events and isinstance(self.events[-1], Result):
            self.events.append(self.reply(0))
        behind = self.api == "mistral" and self.events and isinstance(self.events[-1], Reply)
        if self.chance(1) and not behind:
            self.events.append(System(f"From now on {self.word()}.", developer=self.chance(5)))
        for _ in range(2 if self.chance(1) else 1):
            texts = tuple(f"Please {self.word()}." for _ in range(self.pick(1, 1, 1, 2)))
            if self.fault():
                texts = self.pick(("",), (" ",), (*texts, ""), ("", *texts))
            picture = self.picture() if self.chance(1) else None
            self.events.append(Say(texts, picture, joined=self.chance(5), as_list=self.chance(3)))
        if self.fault() and self.style.told:
            self.orphan()
        self.flush()

    def flush(self) -> None:
        """Late results arrive, after the user's next words; where ids are unique some wait longer."""
        waiting: list[Result] = []
        for result in self.late:
            if self.style.unique and self.chance(2) and isinstance(self.events[-1], Say):
                waiting.append(result)
            else:
                self.events.append(result)
        self.late = waiting

    # ------------------------------------------------------------------------------------------ replies and calls

    def reply(self, calls: int) -> Reply:
        made = tuple(self.call(index) for index in range(calls))
        text = f"Answer {self.word()}." if not made or self.chance(4) else None
        if text is None and self.chance(1) and self.api != "anthropic":
            text = ""
        if not made and self.fault():
            text = self.pick("", None, " ")
        thinks = self.story.thinking_on if self.lawful or not self.chance(2) else self.chance(5)
        thought = f"Let me think {self.word()}." if thinks else None
        return Reply(made, text, thought, text_first=not self.chance(1))

    def call(self, index: int) -> Call:
        word, tool = self.word(), self.pick(*self.names)
        raw = self.style.id(self.turn, index, self.total, tool)
        self.total += 1
        if self.legacy:
            return Call(word, tool, arguments={"q": word}, kind="legacy")
        if self.custom and tool == self.names[0]:
            return Call(word, tool, raw, text=f"free text {word}\n*** end", kind="custom")
        if self.fault():
            broken = self.pick(
                f'{{"q": "{word}"', f"{word}", f'["{word}", 1]', f'"{word}"', f'{{"q": NaN, "r": "{word}"}}'
            )
            return Call(word, tool, raw, text=broken)
        return Call(word, tool, raw, {"q": word, **self.pick(*EXTRAS)})

    def called(self) -> None:
        """A reply with calls, and what became of them."""
        if not self.style.unique:
            self.events.extend(self.late)  # before their ids come again
            self.late = []
        reply = self.reply(1 if self.legacy else self.pick(1, 1, 2, 3, 5))
        self.turn += 1
        results = [self.result(call) for call in reply.calls]
        for call, result in zip(reply.calls, results, strict=True):
            self.story.answers[call.word] = result
        answered = self.missing(reply, results)
        if self.fault() and self.style.unique and self.style.told and answered and not self.legacy:
            self.events.append(answered.pop(0))
        self.events.append(reply)
        if self.fault() and answered and not self.legacy:
            cut = self.draw(st.integers(0, len(answered) - 1))
            self.late.extend(answered[cut:])
            del answered[cut:]
        if self.style.distinct and not self.legacy and self.chance(2):
            answered = self.draw(st.permutations(answered))
        self.events.extend(answered)
        if answered and self.style.distinct and self.style.told and not self.legacy and self.fault():
            self.duplicate(self.pick(*answered))

    def missing(self, reply: Reply, results: list[Result]) -> list[Result]:
        if not self.fault(2) or self.legacy:
            return results
        if self.style.distinct:
            kept = [result for result in results if self.chance(5)]
        else:
            kept = results[: self.draw(st.integers(0, len(results) - 1))]
        given = {result.call for result in kept}
        for call in reply.calls:
            if call.word not in given:
                self.story.answers[call.word] = None
        return kept

    def result(self, call: Call) -> Result:
        text = self.pick(f"Found {self.word()}", f'{{"ok": true, "w": "{self.word()}"}}', f"{self.word()}\n\n  ", "")
        error = self.chance(1)
        lawful_picture = (
            self.api in (None, "anthropic", "openai-responses", "azure-foundry")
            and not (self.lawful and error)
            and not self.legacy
        )
        picture = self.picture() if lawful_picture and self.chance(1) else None
        form = "parts" if text and self.chance(2) else "text"
        if not text and not picture and self.chance(5):
            form = "omitted" if not self.lawful or self.api == "anthropic" else "text"
        raw = call.id if call.id is OWN else self.style.result_id(call.id, call.word)
        return Result(call.word, text, raw, call.tool, error, picture, form, call.kind)

    def duplicate(self, result: Result) -> None:
        if result.error:
            return
        if self.chance(5):
            again = Result(result.call, f"Other {self.word()}", result.id, result.tool)
            self.story.losers.append(again)
        else:
            again = result
        if self.style.unique and self.chance(3):
            self.late.append(again)
        else:
            self.events.append(again)

    def orphan(self) -> None:
        result = Result(None, f"Lost {self.word()}", f"nobody_{self.words}", self.pick(*self.names))
        self.story.orphans.append(result)
        self.events.append(result)

    def picture(self) -> Picture:
        return Picture(self.word(), self.chance(6))


@st.composite
def stories(draw: Any) -> Story:
    """Any story with a known truth, clean or broken."""
    return Teller(draw, None).tell()


@st.composite
def lawful_stories(draw: Any, api: str) -> Story:
    """Stories that this API accepts as they are."""
    return Teller(draw, api).tell()


def source_models(story: Story, api: str) -> tuple[str, ...]:
    """Models that may have written the story. K3 pairs by position, so an orphan would find a call that is open."""
    careful = bool(story.orphans) or story.style in {style.name for style in MISSING}
    return tuple(model for model in MODELS.get(api, ()) if not (careful and model == "kimi-k3"))
