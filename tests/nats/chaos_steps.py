"""A process of a chaos tree that ends before a step of a command."""

import asyncio
import os
from importlib import import_module
from pathlib import Path

STEPS = (
    "leafcast.ask.client:CentreAsks.ask_signed",
    "controllers.issuing.issuer:Issuer.issue",
    "controllers.issuing.issuer:Issuer.change_keys",
    "leafcast.daemon.nodes.enrolment:Enrolment.let_in",
    "leafcast.daemon.nodes.enrolment:Enrolment.admitted",
    "leafcast.daemon.nodes.enrolment:Enrolment.unconfirmed",
    "leafcast.daemon.nodes.token_files:TokenFiles.keep",
    "relay.adapters.jetstream.state_stream:StateStream.put",
)


def end_before_a_step(countdown: Path) -> None:
    """End as the file says: before which step (1 is the next one), and by which signal.

    It counts down, and is gone once that happened. A step is a call of what asks a node, writes the
    ledger, a file or the state, or waits.
    """

    def is_due() -> bool:
        if not countdown.exists():
            return False
        left, number = map(int, countdown.read_text().split())
        if left > 1:
            countdown.write_text(f"{left - 1} {number}")
            return False
        countdown.unlink()
        os.kill(os.getpid(), number)
        return True

    def stepping(honest):
        async def awaited(*args, **named):
            if is_due():
                await asyncio.Event().wait()
            return await honest(*args, **named)

        def plain(*args, **named):
            is_due()
            return honest(*args, **named)

        return awaited if asyncio.iscoroutinefunction(honest) else plain

    for step in STEPS:
        module, _, name = step.partition(":")
        owner, _, method = name.partition(".")
        kind = getattr(import_module(module), owner)
        setattr(kind, method, stepping(getattr(kind, method)))
