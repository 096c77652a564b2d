"""Options of `leafcast upgrade start`: when nodes may begin, and what stops those that follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from leafcast.cli.options.common import Parsed, gathered
from schemas.records.shares import checked_amount, checked_share
from schemas.values.durations import read_duration

_WINDOW = re.compile(r"(?P<cron>.+?) for (?P<duration>\S+)(?: in (?P<zone>\S+))?")
_EXAMPLE = '"0 2 * * 2-5 for 4h", or with a zone, "0 2 * * 2-5 for 4h in Europe/Berlin"'


@dataclass(frozen=True, slots=True)
class ReleaseLimits:
    """What a person said of a release: fields of its spec, and of each of its waves."""

    spec: dict[str, Any]
    waves: dict[str, Any]


def read_window(text: str) -> dict[str, str]:
    """A window as a LeafcastRelease has it; raises ValueError."""
    # Here, as few name a window.
    from schemas.records.windows import Window, window_fault  # noqa: PLC0415

    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is no window; write one such as {_EXAMPLE}')
    said = {name: it for name, it in found.groupdict().items() if it}
    window = Window(said["cron"], int(read_duration(said["duration"])), said.get("zone", ""))
    if fault := window_fault(window):
        raise ValueError(fault)
    return said


def _amount(text: str) -> int | str:
    is_number = text.isascii() and text.isdecimal()
    return checked_amount(int(text) if is_number else text)


_WINDOWS = Parsed("window", read_window)
_AMOUNT = Parsed("amount", _amount)
_SHARE = Parsed("share", checked_share)


def _limits(
    soak: str | None,
    window: tuple[dict[str, str], ...],
    failures: int | str | None,
    offline: str | None,
    success: str | None,
    *,
    allow_empty: bool,
) -> ReleaseLimits:
    spec: dict[str, Any] = {"windows": [*window]} if window else {}
    said: dict[str, dict[str, Any]] = {
        "failures": {"maximum": failures},
        "offline": {"maximum": offline},
        "success": {"minimum": success},
    }
    spec |= {name: it for name, it in said.items() if None not in it.values()}
    waves: dict[str, Any] = {"soak": soak} if soak else {}
    return ReleaseLimits(spec, {**waves, "allowEmpty": True} if allow_empty else waves)


limit_options = gathered(
    "limits",
    _limits,
    click.option("--soak", help="How long each wave must stay good, such as 1h."),
    click.option(
        "--window",
        type=_WINDOWS,
        multiple=True,
        metavar='"CRON for DURATION [in ZONE]"',
        help='When nodes may begin: "0 2 * * 2-5 for 4h". Several are said one by one. Without a '
        "zone by that of the label zone of each SyncTarget, and of relays by UTC.  [default: "
        "always]",
    ),
    click.option(
        "--failures",
        type=_AMOUNT,
        help="How many of a wave may go back or refuse it: a number, or a share.  [default: 5%]",
    ),
    click.option(
        "--offline",
        type=_SHARE,
        help="Which share of a wave may not be heard of as it passes.  [default: 20%]",
    ),
    click.option(
        "--success",
        type=_SHARE,
        help="Which share of those heard of must be healthy.  [default: 95%]",
    ),
    click.option("--allow-empty", is_flag=True, help="Pass waves in which nobody tries it."),
)
"""All of them, given to the command as `limits: ReleaseLimits`."""
