"""Seats of members-to-be: their tokens, what machines asked with them, and what they are told.

They are kept in the centre's data directory, in a file of its state: whoever is active goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from leafcast.members.addresses import misfit
from relay.adapters.server.cluster_settings import MEMBERS
from relay.atomic_file import atomic_write
from relay.members.lease import CLOCK_SECONDS_MAX
from schemas.enrolment.member_requests import MemberRequest, read_member_request
from schemas.enrolment.tokens import token_id
from schemas.values.codec import from_json
from schemas.values.identity import NodePath
from schemas.values.refusals import WireRefused
from schemas.values.wire import encode

FILE = "members.json"
ASKS_MS = 10_000
"""So long after its last request a machine still counts as asking; it asks each second."""


class SeatsDamaged(Exception):
    """The file of the seats says nothing; names it, and the remedy."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is damaged: remove it, and make new tokens for members")
        self.file = file


@dataclass(frozen=True, slots=True)
class MemberSeat:
    """One member-to-be: the public half of its token, and what its machine asked with it.

    `settings` are what it is told, sealed to its key; empty as long as nobody let it in. `replaces`
    is the lost member whose place it takes, "" if the node grows.
    """

    path: NodePath
    name: str
    public: bytes
    until_ms: int
    asked: MemberRequest | None = None
    settings: bytes = b""
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class SeatVerdict:
    """What is answered to a request: `refused` with a reason and a remedy, or it waits."""

    reason: str = ""
    remedy: str = ""
    refused: bool = False


class MemberSeats:
    """The seats of all nodes, as their file has them; raises SeatsDamaged."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._seats = _read(self._file)
        # Why the machine of a seat waits, as it was found last.
        self._waits = dict[tuple[NodePath, str], str]()
        self._heard_ms = dict[tuple[NodePath, str], int]()

    def of(self, path: NodePath) -> tuple[MemberSeat, ...]:
        """Those of a node, by name."""
        return tuple(seat for (at, _), seat in sorted(self._seats.items()) if at == path)

    def replacing(self, now_ms: int) -> list[MemberSeat]:
        """Those whose machines ask now for the place of a lost member, and are not told yet.

        One that gave up asks for nothing: what it meant to replace may long be back.
        """
        return [
            seat
            for at, seat in self._seats.items()
            if self.is_asking(seat) and now_ms - self._heard_ms.get(at, -ASKS_MS) < ASKS_MS
        ]

    def is_asking(self, seat: MemberSeat) -> bool:
        """Whether its machine asked for a lost member's place, as it is here, and is not told."""
        kept = self._seats.get((seat.path, seat.name)) == seat
        return kept and bool(seat.replaces and seat.asked and not seat.settings)

    def hear(self, seat: MemberSeat, now_ms: int) -> None:
        """Note that the machine of a seat asks."""
        self._heard_ms[seat.path, seat.name] = now_ms

    def wait(self, seat: MemberSeat, why: str) -> None:
        """Have the machine of a seat be told why it waits."""
        self._waits[seat.path, seat.name] = why

    def why(self, seat: MemberSeat) -> str:
        """Why its machine waits; "" if that is not known."""
        return self._waits.get((seat.path, seat.name), "")

    def by_token(self, token: str) -> MemberSeat | None:
        """The seat that a token (its id) is for."""
        each = self._seats.values()
        return next((seat for seat in each if token_id(seat.public) == token), None)

    def free_name(self, path: NodePath, names: Iterable[str]) -> str:
        """The name that is free the longest: no token is for it, or nobody asked with that yet.

        "" if there is none.
        """
        seats = {seat.name: seat for seat in self.of(path)}
        free = [name for name in names if name not in seats or seats[name].asked is None]
        return min(free, key=lambda it: seats[it].until_ms if it in seats else 0, default="")

    def put(self, *seats: MemberSeat) -> None:
        """Keep these, in place of those of the same names; raises OSError."""
        self._seats |= {(seat.path, seat.name): seat for seat in seats}
        self._write()

    def drop(self, seat: MemberSeat) -> None:
        """Have its token be void; raises OSError."""
        if self._seats.pop((seat.path, seat.name), None) is not None:
            self._write()

    def forget(self, path: NodePath) -> None:
        """Have all tokens for members of a node be void; raises OSError."""
        self._seats = {key: seat for key, seat in self._seats.items() if key[0] != path}
        self._write()

    def _write(self) -> None:
        atomic_write(self._file, seats_text(self._seats.values()))


def judged(seat: MemberSeat, asked: MemberRequest, release: str, now_ms: int) -> SeatVerdict:
    """Whether a machine may have a seat, of a node whose centre runs this release."""
    what = f"member {seat.name} of {seat.path}"
    if asked.path != seat.path:
        reason = f"the token is for a member of {seat.path}, and not of {asked.path}"
        return SeatVerdict(reason, f"run it with the token for {asked.path}", refused=True)
    if seat.asked is not None and seat.asked.key != asked.key:
        reason = f"another machine ({seat.asked.host_name}) asked to be {what} with this token"
        return SeatVerdict(reason, _again(seat), refused=True)
    # Of a lost member's place also for who asked in time, gave up, and comes back weeks later.
    is_open = seat.asked is None or (seat.replaces and not seat.settings)
    if is_open and now_ms > seat.until_ms:
        return SeatVerdict("the token has expired", _again(seat), refused=True)
    if asked.release != release:
        reason = f"this machine has leafcast {asked.release}, and the centre {release}"
        remedy = f"install leafcast {release} on it: members of a node run the same release"
        return SeatVerdict(reason, remedy, refused=True)
    if misplaced := misfit(asked):
        remedy = "say --member-host and --listen again: leafcast join --help has their forms"
        return SeatVerdict(misplaced, remedy, refused=True)
    off = (asked.now_ms - now_ms) / 1000
    if abs(off) > CLOCK_SECONDS_MAX:  # It would never be active.
        way = "ahead of" if off > 0 else "behind"
        reason = f"the clock of this machine is {abs(off):.0f} s {way} the centre's"
        return SeatVerdict(reason, "set it, best by NTP, and run it again", refused=True)
    if seat.replaces:
        return SeatVerdict(f"it is to be {what}, in the place of {seat.replaces}")
    return SeatVerdict(f"it is to be {what}; at the centre: leafcast node grow {seat.path}")


def seat_names(path: NodePath) -> tuple[str, ...]:
    """The names of the machines that ask: the centre's own is the first already."""
    names = tuple(f"m{number}" for number in range(1, MEMBERS + 1))
    return names[1:] if path.is_root else names


def _again(seat: MemberSeat) -> str:
    way = f"node add {seat.path} --member"
    if seat.replaces:
        way = f"node replace {seat.path} --member {seat.replaces}"
    return f"make another with `leafcast {way}` at the centre"


def _form(seat: MemberSeat) -> dict[str, object]:
    return {
        "path": str(seat.path),
        "name": seat.name,
        "public": seat.public.hex(),
        "untilMs": seat.until_ms,
        "asked": encode(seat.asked).hex() if seat.asked is not None else "",
        "settings": seat.settings.hex(),
        "replaces": seat.replaces,
    }


def seats_text(seats: Iterable[MemberSeat]) -> str:
    """What a file of seats says."""
    return json.dumps([_form(seat) for seat in seats], indent=2) + "\n"


def _read(file: Path) -> dict[tuple[NodePath, str], MemberSeat]:
    try:
        return read_seats(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, WireRefused) as error:
        raise SeatsDamaged(file) from error


def read_seats(data: bytes) -> dict[tuple[NodePath, str], MemberSeat]:
    """What a file says; raises ValueError, KeyError, TypeError, AttributeError or WireRefused."""
    found = {}
    for form in from_json(data):
        path, name = NodePath.parse(form["path"]), str(form["name"])
        said = bytes.fromhex(form["asked"])
        found[path, name] = MemberSeat(
            path,
            name,
            bytes.fromhex(form["public"]),
            int(form["untilMs"]),
            read_member_request(said) if said else None,
            bytes.fromhex(form["settings"]),
            str(form.get("replaces", "")),
        )
    return found
