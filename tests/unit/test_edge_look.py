"""An edge is looked at again once what changed its wants can have been done."""

from __future__ import annotations

from types import SimpleNamespace

from relay.core.effects import SendReport, StoreOwn, WantsChanged
from relay.core.events import Tick
from relay.shell.batch_news import BatchNews
from relay.shell.edge_look import EdgeLook
from schemas.values.identity import mail_key

KEY, OTHER = (mail_key("", "", "", name) for name in ("shop", "cart"))
VIEW = SimpleNamespace(summary=str, wanted={})


def test_what_is_received_is_looked_at_once_its_objects_can_be_there():
    look = EdgeLook()
    received = StoreOwn(KEY, b"", hops=(1,))
    first, later = news(received, WantsChanged()), news(SendReport(f"{OTHER}.1", b""))
    assert look.after(first, VIEW).keys == set()
    assert look.after(later, VIEW).keys == {KEY, OTHER}
    assert look.after(news(), VIEW) is None
    # What changes nothing there is as it was meant at once.
    assert look.after(news(received), VIEW).keys == {KEY}
    # What is to be looked at later is, though the next batch says nothing.
    look.after(first, VIEW)
    assert look.after(news(), VIEW).keys == {KEY}


def news(*effects):
    return BatchNews((Tick(),), effects)
