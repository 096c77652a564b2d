"""One member carries out the steps by which another one takes the place of a lost one."""

from __future__ import annotations

import shutil
from pathlib import Path

from leafcast.members.membership import SHOWN, Succession, believed, routes_in, stepped
from leafcast.members.settings import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    ROUTES,
    MemberSettings,
    keep_member,
)
from relay.atomic_file import atomic_write, make_folder


class Replaced(Exception):
    """This member is none any more; names it, the members there are, and the remedy.

    It only seems so where what answers at a route says it, which may be anybody.
    """

    def __init__(self, settings: MemberSettings, members: str, *, is_certain: bool = True) -> None:
        said = f"{settings.name} is no member of {settings.path} any more, whose members are"
        end = "end this one for good, and remove its data directory"
        if not is_certain:
            said = f"it seems that {said}"
            end = (
                "see `leafcast tree --members` at the centre, and only if it says the same "
                f"{end}; else start it again"
            )
        super().__init__(f"{said} {members}: another machine took its place; {end}")


def carry_out(folder: Path, settings: MemberSettings, change: Succession) -> MemberSettings:
    """Have a member's folder be as the change wants it now; its settings then.

    Its server is to read them after that. Again is harmless. Raises Replaced or OSError.
    """
    if settings.name not in change.machines:
        raise Replaced(settings, ", ".join(change.machines))
    if settings.applied >= (change.number, change.step):
        return settings
    done = stepped(settings, change, folder)
    before, own = settings.cluster.tls, change.machines[settings.name]
    place, key, certificate = folder / routes_in(change), own.route_key, own.certificate
    if change.step < SHOWN and before is not None:
        key = before.files.key.read_text(encoding="utf-8")
        certificate = before.files.certificate.read_text(encoding="utf-8")
    make_folder(place)
    atomic_write(place / KEY_FILE, key)
    atomic_write(place / CERTIFICATE_FILE, certificate)
    atomic_write(place / AUTHORITY_FILE, believed(change))
    keep_member(folder, done)
    return done


def forget_routes(folder: Path, settings: MemberSettings) -> None:
    """Remove what its server reads no more: keys of certificates that are void."""
    tls = settings.cluster.tls
    used = tls.authorities.parent.name if tls is not None else ROUTES
    for place in folder.glob(f"{ROUTES}*"):
        if place.is_dir() and place.name != used:
            shutil.rmtree(place, ignore_errors=True)
