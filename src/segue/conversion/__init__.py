"""The one way to convert a body: render the segments of a conversation that are not rendered yet, and join them.

A body takes this way through the modules: `sessions` looks for an earlier body of the same conversation, which this one
continues. If there is one, only the items after it are parsed (`session`), and their messages rendered with the state
at the border (`segments`); the bytes of both are joined. A body with the settings of another conversation continues
from the state with these alone. If there is none, the state is the empty one, and the body is parsed and rendered as a
whole (`convert`); a large body is converted as a conversation that grows (`slices`).
"""
