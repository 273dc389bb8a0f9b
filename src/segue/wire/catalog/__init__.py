"""Every type of tool call and tool output that a provider's API has, alone: `types.json` says what each must hold,
the tables of shapes where in it name, arguments, output and ids stand.

A new type is a line in `types.json`, a shape in its provider's table, and samples.
"""
