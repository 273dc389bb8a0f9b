"""Store a conversation, resume it in another process, search it, and fork it.

Expected output:

    resumed with 2 messages
    [('Travel', 3)]
    found: Rome or Oslo?
    fork has 2 messages, the original 3
"""

import tempfile
from pathlib import Path

import segue
from segue.store import StoredConversation, open_store

answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Oslo."}]}

with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "history.db") as store:
    with StoredConversation.create(store, title="Travel") as chat:
        chat.add_user("Rome or Oslo?")
        chat.add_reply(answer, source="anthropic")

    with StoredConversation(store, chat.id) as resumed:
        print("resumed with", len(resumed.messages), "messages")
        resumed.add_user("Why?")
        assert segue.check(resumed.render("mistral").body, "mistral")
        print([(row.title, row.messages) for row in store.list()])
        print("found:", store.search("rome")[0].snippet.text)

        with resumed.fork("turn-1") as fork:
            print("fork has", len(fork.messages), "messages, the original", len(resumed.messages))
