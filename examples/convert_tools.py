"""Convert tool declarations, also those of an MCP server, to what each API accepts.

Expected output:

    openai-chat: 2 entries
      tool 'find.files' renamed to 'find_files_diss30a0'
    anthropic: 2 entries
      tool 'find.files' renamed to 'find_files_diss30a0'
    gemini: 1 entries
    kimi: 2 entries
      schema: `format` moved to the description (at pattern)
      tool 'find.files' renamed to 'find_files_diss30a0'
"""

import segue

declarations = [
    {"name": "search", "description": "Search the web.", "input_schema": {"type": "object", "properties": {}}},
    {  # as an MCP server lists it
        "name": "find.files",
        "inputSchema": {
            "type": "object",
            "properties": {"pattern": {"type": "string", "format": "regex"}, "depth": {"type": "integer"}},
        },
    },
]

for target in ("openai-chat", "anthropic", "gemini", "kimi"):
    converted = segue.convert_tools(declarations, target=target)
    print(f"{target}: {len(converted)} entries")
    for finding in converted.report.findings:
        print(f"  {finding.message}")
