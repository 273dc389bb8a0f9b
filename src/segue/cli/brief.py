"""`segue brief`: a hand-over of a stored conversation for a fresh start, extracted without a model."""

from __future__ import annotations

import click

from segue.cli import options, streams, user_store

EMPTY = "there is nothing to hand over: the conversation has no message of the user"


@options.command("brief")
@options.id_argument
@click.option("--full", is_flag=True, help="Print the whole conversation after it.")
def command(id: str, *, full: bool, as_json: bool) -> None:
    """Print what another model needs for a fresh start: goal, changed files, open points, last results.

    Every line is taken from the conversation, and names its turn as segue diag counts them. Edit it and send it:

    \b
      segue brief 1nfm > brief.md
      segue run -m moonshot/kimi-k2.6 @brief.md
    """
    import msgspec

    from segue.store.replay import replay_events
    from segue.view.brief import make_brief
    from segue.view.markdown import render_messages

    with user_store.connect() as store:
        name = store.find_id(id)
        messages = replay_events(store.events(name)).chat.messages
    brief = make_brief(messages)
    if brief.is_empty:
        raise streams.BadInputError(EMPTY)
    text = render_messages(messages) if full else ""
    if as_json:
        value = {"id": name, **msgspec.to_builtins(brief), **({"conversation": text} if full else {})}
        streams.write(msgspec.json.encode(value), b"\n")
    else:
        streams.write(f"{brief}\n## The whole conversation\n\n{text}" if full else str(brief))
