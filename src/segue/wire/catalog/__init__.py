"""The catalog of tool call and tool output types of all provider APIs, as single payloads.

`types.json` holds the fields of each type. The tables of shapes hold the paths of its name, arguments, output and ids.
A new type is a line in `types.json`, a shape in its provider's table, and samples.
"""
