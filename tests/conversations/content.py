"""Pictures, files, empties, errors, and blocks that only one provider has."""

from __future__ import annotations

from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import assistant, system, user
from tests.conversations.build import GONE, PDF, PNG, Case, anthropic, call, calls, chat, kimi, result, tool, use

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
IMAGE_URL = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/cat.png"}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "segue"}}
HIT = {
    "type": "web_search_result",
    "title": "Segue",
    "url": "https://pages.example/segue",
    "encrypted_content": "RW5jcnlwdGVk",
    "page_age": None,
}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [HIT]}

CASES = (
    Case(
        "pictures_in_results",
        "anthropic",
        "a picture in a tool_result beside text, and one alone",
        anthropic(
            user("Look."),
            anthropic_assistant(use("toolu_1", "screenshot"), use("toolu_2", "screenshot")),
            anthropic_user(
                result("toolu_1", [text("The screen:"), IMAGE]), result("toolu_2", [IMAGE_URL]), text("What is it?")
            ),
            tools=[],
        ),
    ),
    Case(
        "pictures_from_the_user",
        "openai-chat",
        "a picture by URL with its detail, and one as data",
        chat(
            user(
                [
                    {"type": "text", "text": "Compare."},
                    {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                ]
            )
        ),
    ),
    Case(
        "picture_in_a_chat_tool_message",
        "openai-chat",
        "a picture in role tool, which Chat refuses (OAI-CHAT-12)",
        chat(
            user("Look."),
            calls(call("call_1", "screenshot"), call("call_2", "read_file", {"path": "a"})),
            tool("call_1", [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
            tool("call_2", "A"),
            user("Well?"),
        ),
    ),
    Case(
        "files_and_documents",
        "anthropic",
        "documents by bytes, URL, text and file id, one of them in a result",
        anthropic(
            anthropic_user(
                text("Read these."),
                {
                    "type": "document",
                    "title": "Paper",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                },
                {"type": "document", "source": {"type": "url", "url": "https://papers.example/one.pdf"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain words"}},
            ),
            anthropic_assistant(use("toolu_1", value={"path": "a.pdf"})),
            anthropic_user(
                result(
                    "toolu_1",
                    [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}],
                )
            ),
        ),
    ),
    Case(
        "chat_files_and_audio",
        "openai-chat",
        "file and input_audio parts",
        chat(
            user(
                [
                    {"type": "text", "text": "Hear and read."},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"filename": "one.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    },
                ]
            ),
            model="gpt-audio",
        ),
    ),
    Case(
        "empty_everything",
        "openai-chat",
        "empty user words, an empty answer, empty arguments, an empty result",
        chat(
            system(""),
            user(""),
            assistant(""),
            user("Go."),
            calls(call("call_1", "glob", ""), content=""),
            tool("call_1", ""),
            assistant(None),
            user([]),
            user("And?"),
        ),
    ),
    Case(
        "empty_text_beside_calls",
        "anthropic",
        "the API itself may return empty text blocks, and refuses them (ANT-13)",
        anthropic(
            user("Go."),
            anthropic_assistant(text(""), use("toolu_1", value={"path": "a"})),
            anthropic_user(result("toolu_1", [text("")]), text("")),
            anthropic_assistant(text("")),
            user("And?"),
        ),
    ),
    Case(
        "white_space_only",
        "anthropic",
        "messages of white space alone (ANT-14)",
        anthropic(user(" \n"), anthropic_assistant(text(" ")), user("Go."), system=" "),
    ),
    Case(
        "empty_text_part_to_kimi",
        "kimi",
        "an empty text part beside calls (KIM-06)",
        kimi(
            user("Go."),
            calls(call("functions.glob:0", "glob"), content=[{"type": "text", "text": ""}]),
            tool("functions.glob:0", "a b"),
            assistant(""),
            user("And?"),
        ),
    ),
    Case(
        "empty_results",
        "anthropic",
        "results that are '', [], or have no content at all (ANT-17)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", "touch"), use("toolu_2", "touch"), use("toolu_3", "touch")),
            anthropic_user(result("toolu_1", ""), result("toolu_2", []), result("toolu_3")),
        ),
    ),
    Case(
        "error_results",
        "anthropic",
        "is_error has no counterpart on Chat: it is told in the text (OAI-CHAT-13)",
        anthropic(
            user("Go."),
            anthropic_assistant(
                use("toolu_1", value={"path": "a"}),
                use("toolu_2", value={"path": "b"}),
                use("toolu_3", value={"path": "c"}),
            ),
            anthropic_user(
                result("toolu_1", "No such file: a", is_error=True),
                result("toolu_2", "B", is_error=False),
                result("toolu_3", is_error=True),
            ),
        ),
    ),
    Case(
        "error_result_with_a_picture",
        "anthropic",
        "an error holds text only (ANT-18)",
        anthropic(
            user("Go."),
            anthropic_assistant(use("toolu_1", "screenshot")),
            anthropic_user(result("toolu_1", [text("It broke:"), IMAGE_URL], is_error=True)),
        ),
    ),
    Case(
        "json_results",
        "openai-chat",
        "a result that is JSON text stays the text it was",
        chat(
            user("Go."),
            calls(call("call_1", "query")),
            tool("call_1", '{"rows": [{"n": 1, "x": 1.0, "s": "ü"}],  "more":false}'),
        ),
    ),
    Case(
        "refusal",
        "openai-chat",
        "an assistant message that is a refusal",
        chat(user("Do it."), assistant(None, refusal="I can't help with that."), user("Then something else.")),
    ),
    Case(
        "search_results_and_references",
        "anthropic",
        "search_result and tool_reference blocks inside results, as Claude Code's ToolSearch sends them",
        anthropic(
            user("Go."),
            anthropic_assistant(
                use("toolu_1", "ToolSearch", {"query": "files"}), use("toolu_2", "search", {"query": "segue"})
            ),
            anthropic_user(
                result("toolu_1", [{"type": "tool_reference", "tool_name": "read_file"}]),
                result(
                    "toolu_2",
                    [
                        {
                            "type": "search_result",
                            "source": "https://pages.example",
                            "title": "Segue",
                            "content": [text("It goes on.")],
                        }
                    ],
                ),
                text("Tool loaded."),
            ),
        ),
    ),
    Case(
        "citations",
        "anthropic",
        "citations on the assistant's text go home",
        anthropic(
            user("Who?"),
            anthropic_assistant(
                text(
                    "She did.",
                    citations=[
                        {
                            "type": "char_location",
                            "cited_text": "She did it.",
                            "document_index": 0,
                            "document_title": None,
                            "start_char_index": 0,
                            "end_char_index": 11,
                        }
                    ],
                )
            ),
            user("Sure?"),
        ),
    ),
    Case(
        "unknown_block",
        "anthropic",
        "a block that nobody knows yet: kept at home, told abroad",
        anthropic(
            anthropic_user(text("Look."), {"type": "hologram", "depth": 3}),
            anthropic_assistant(text("I see.")),
            user("Good."),
        ),
    ),
    Case(
        "half_an_emoji",
        "openai-chat",
        "a client cut an emoji in two: the lone surrogate becomes U+FFFD",
        chat(
            user("Cut \ud83d here."),
            calls(call("call_1", "read_file", {"path": "a"})),
            tool("call_1", "and \ude00 here"),
        ),
    ),
    Case(
        "server_tools_anthropic",
        "anthropic",
        "a web search that the provider ran, with its sealed results and a client's call behind it",
        anthropic(
            user("Search."),
            anthropic_assistant(
                text("Searching."), SEARCH, FOUND, text("Found it."), use("toolu_1", value={"path": "a"})
            ),
            anthropic_user(result("toolu_1", "A")),
            tools=[
                {"type": "web_search_20250305", "name": "web_search"},
                {"name": "read_file", "input_schema": {"type": "object"}},
            ],
        ),
    ),
    Case(
        "server_tool_failed",
        "anthropic",
        "a provider-run tool that ended in an error object",
        anthropic(
            user("Search."),
            anthropic_assistant(
                SEARCH,
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
                },
                text("It is down."),
            ),
            user("Pity."),
        ),
    ),
    Case(
        "pause_turn",
        "anthropic",
        "the provider stopped in its own tool and is to go on (ANT-39)",
        anthropic(user("Search."), anthropic_assistant(text("Searching."), SEARCH)),
    ),
    Case(
        "mcp_blocks",
        "anthropic",
        "a tool that the provider called over MCP (ANT-10)",
        anthropic(
            user("Ask the server."),
            anthropic_assistant(
                {
                    "type": "mcp_tool_use",
                    "id": "mcptoolu_1",
                    "name": "lookup",
                    "server_name": "wiki",
                    "input": {"q": "segue"},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_1",
                    "is_error": False,
                    "content": [text("It goes on.")],
                },
                text("It goes on."),
            ),
            user("Thanks."),
            tools=GONE,
        ),
    ),
    Case(
        "video_to_kimi",
        "kimi",
        "a part that only Kimi has",
        kimi(
            user(
                [
                    {"type": "text", "text": "Watch."},
                    {"type": "video_url", "video_url": {"url": "https://films.example/a.mp4"}},
                ]
            )
        ),
    ),
)
