"""How events and effects read in a story, and differences in a verdict."""

from __future__ import annotations

from relay.core import effects as fx
from relay.core.events import (
    Event,
    HelloArrived,
    LinkChanged,
    MailArrived,
    MailWritten,
    ObjectObserved,
    ReportArrived,
    Welcomed,
)


def told_event(event: Event) -> str:
    match event:
        case MailArrived():
            return f"MailArrived {event.sequence} {event.key[:8]} pending {event.pending}"
        case MailWritten():
            return f"MailWritten {event.child} {event.key[:8]} {event.sequence}"
        case ReportArrived():
            return f"ReportArrived {event.child} {event.key[:8]}"
        case LinkChanged():
            return f"LinkChanged {event.up}"
        case HelloArrived():
            return f"HelloArrived {event.child}"
        case Welcomed():
            m = event.message
            return f"Welcomed {m.run} last {m.last_sequence} {m.repair}"
        case ObjectObserved():
            return f"ObjectObserved {event.key.name} {event.address[:8]} {event.error}"
        case _:
            return type(event).__name__


def told_effect(effect: fx.Effect) -> str:
    match effect:
        case fx.WriteMail():
            body = "whole" if effect.has_body else "bare"
            return f"WriteMail {effect.child} {effect.key[:8]} {effect.generation} {body}"
        case fx.ClearMail():
            return f"ClearMail {effect.child} {effect.key[:8]} {effect.sequence}"
        case fx.StoreOwn():
            erased = "" if effect.data is not None else " erased"
            return f"StoreOwn {effect.key[:8]} {effect.generation}{erased}"
        case fx.SendReport():
            return f"SendReport {effect.key[:8]}"
        case fx.AckMail() | fx.ResetMail():
            return f"{type(effect).__name__} {effect.sequence}"
        case fx.Noted():
            return f"Noted {effect.reason} {effect.subject} {effect.detail}"
        case _:
            return type(effect).__name__


def bytes_of(effect: fx.Effect) -> bytes:
    data = getattr(effect, "data", None)
    return data if isinstance(data, bytes) else b""


def differing(have: dict, want: dict) -> str:
    """How what is held differs from what is wanted, by the names of the keys."""
    more = sorted(key.name for key in have.keys() - want.keys())
    less = sorted(key.name for key in want.keys() - have.keys())
    other = sorted(key.name for key in have.keys() & want.keys() if have[key] != want[key])
    return f"too much {more}, lacks {less}, differs in {other}"


def shortened(arms: object) -> dict[str, int]:
    """Counts by arm, each named by the first characters of its address."""
    assert hasattr(arms, "items")
    return {name[:8]: count for name, count in arms.items()}
