"""Text tool formats: tool calls that a model writes in its text instead of in API fields.

`regions` defines openers, regions and segments; each format is a module with a `TextFormat`, listed in `registry`.
`scan` splits text into segments, `extractor` does so for replies, `prompting` renders requests as text.
"""
