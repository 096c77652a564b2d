"""The beginning of the children's sessions: whose turn it is, and what each must be shown."""

from __future__ import annotations

from collections.abc import Callable

from relay.core.accepting import Accepting
from relay.core.children import Child
from relay.core.state import State
from schemas.identity import INDEX_KEY
from schemas.reports import Heartbeat, SessionMessage
from schemas.wire import replace


class Beginning:
    """Lets children in at one node; `ask` asks in the name of one that waited."""

    def __init__(
        self, state: State, accepting: Accepting, ask: Callable[[str, bytes], None]
    ) -> None:
        self._state = state
        self._accepting = accepting
        self._ask = ask

    def admits(
        self, name: str, question: bytes, heartbeat: Heartbeat, mail: SessionMessage, digest: bytes
    ) -> bool:
        """Whether a child may be answered now; `mail` and `digest` tell of its mailbox."""
        if heartbeat.epoch:
            return True
        read, end = _read_before(heartbeat, mail, digest), mail.last_sequence
        return self._state.admission.admit(name, question, read, end, self._state.now.seconds)

    def show(
        self, name: str, child: Child, heartbeat: Heartbeat, answer: SessionMessage
    ) -> SessionMessage:
        """Write what a child must see in each new session, after where it will begin to read.

        One that asks once more before it had an answer finds it after what it was answered first.
        """
        state, end = self._state, answer.last_sequence
        first = state.admission.begins(name, heartbeat.run, heartbeat.last_epoch, end)
        if first is None:
            state.mailboxes.again(name)
        if (index := state.held.get(INDEX_KEY)) is not None:
            self._accepting.send_index(name, child, index, again=first is None)
        return answer if first is None else replace(answer, last_sequence=first)

    def has_read(self, name: str, sequence: int) -> None:
        """A child in session has read so far; if that is all, the next one begins."""
        self._state.admission.has_read(name, sequence, self._state.now.seconds)
        self.let_in()

    def leave(self, name: str) -> None:
        """A child has read all, or is gone: the next one begins."""
        self._state.admission.leave(name)
        self.let_in()

    def let_in(self) -> None:
        """Answer those that waited, as far as there is room."""
        admission, now = self._state.admission, self._state.now.seconds
        while (waited := admission.next(now)) is not None:
            self._ask(*waited)


def _read_before(heartbeat: Heartbeat, mail: SessionMessage, digest: bytes) -> int:
    """From where on a child that asks for a session will read: what it need not read again."""
    agrees = heartbeat.mail_digest == digest
    if heartbeat.incarnation != mail.incarnation:
        return mail.last_sequence if agrees else 0
    behind = heartbeat.sequence < mail.last_sequence
    known = mail.swept_through <= heartbeat.sequence <= mail.last_sequence
    return heartbeat.sequence if known and (behind or agrees) else 0
