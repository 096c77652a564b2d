"""A machine that takes the place of a lost member: what that comes to, and what it is told.

Pure but for the randomness and the moment that come in as arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from leafcast.members.addresses import leaf_urls_of, misfit, served_names
from leafcast.members.founding import EVERYWHERE, Founding, LeafCertificate
from leafcast.members.membership import (
    DONE,
    LEFT,
    REMOVED,
    TRUSTED,
    Machine,
    Succession,
    next_name,
)
from leafcast.members.settings import MemberSettings
from leafcast.node.member_change import NOT_LOST, ReplacementRefused
from leafcast.node.member_forms import SILENT
from relay.adapters.server.leaf_address import LOOPBACK, is_loopback
from relay.adapters.server.nats_config import AccountSeeds
from relay.adapters.tls.authority import Authority, new_key, signing_request, valid_until
from schemas.enrolment.member_requests import MemberRequest

_CURRENT = ("leads", "follows")


@dataclass(frozen=True, slots=True)
class Survivors:
    """The members that are left, by what they say: where each is, and where children dial in."""

    hosts: Mapping[str, tuple[str, int]]
    leaf_urls: Mapping[str, tuple[str, ...]]


def former_of(settings: MemberSettings, kept: Succession | None) -> tuple[str, ...]:
    """The names of all that were members once, and are none."""
    known = kept.former if kept is not None else ()
    return tuple(it for it in known if it not in settings.keys)


def name_for(settings: MemberSettings, kept: Succession | None) -> str:
    """What the next machine is called; who is waited for, and has no place yet, is not counted."""
    return next_name([*settings.keys, *former_of(settings, kept)])


def check_replaceable(
    settings: MemberSettings,
    kept: Succession | None,
    lost: str,
    forms: Collection[Mapping[str, Any]],
    running: Collection[str],
) -> None:
    """Refuse unless this member is lost, and the others are well.

    `forms` are as member_forms, and `running` the members whose servers are heard. Raises
    ReplacementRefused.
    """
    path, names = settings.path, ", ".join(settings.keys)
    if settings.cluster.tls is None:
        reason = f"the routes between the members of {path} have no certificates"
        remedy = "start the lost process again: `leafcast up --members 3` keeps all on one machine"
        raise ReplacementRefused(reason, remedy)
    if kept is not None and kept.step != DONE and (kept.step, kept.came) != (REMOVED, lost):
        remedy = "wait until it is done: `leafcast tree --members` shows it"
        raise ReplacementRefused(f"a change of {path} is under way: {kept.said}", remedy)
    if lost in former_of(settings, kept):
        reason = f"another machine has the place of {lost} of {path} already"
        raise ReplacementRefused(reason, f"its members are {names}")
    if lost not in settings.keys:
        raise ReplacementRefused(f"{path} has no member {lost!r}", f"its members are {names}")
    standing = {it["name"]: it for it in forms}
    is_heard = standing.get(lost, {}).get("role", SILENT) != SILENT
    if is_heard or lost in running:
        reason = f"member {lost} of {path} runs, and is heard"
        remedy = "only the place of one that is lost is taken: end it first, process and server"
        # A server alone may have been heard for the last time just before it was lost.
        raise ReplacementRefused(reason, remedy, *([NOT_LOST] if is_heard else []))
    for name in settings.keys:
        other = standing.get(name, {})
        if name == lost or (other.get("role", SILENT) != SILENT and other["server"] in _CURRENT):
            continue
        reason = f"member {name} of {path} is not there, or its server has not caught up"
        remedy = "wait for it, or start it: both others must be well before one is replaced"
        raise ReplacementRefused(reason, remedy)


def check_place(settings: MemberSettings, change: Succession, asked: MemberRequest) -> None:
    """Refuse the machine that comes if it is to be reached elsewhere by now: the others were told.

    Raises ReplacementRefused.
    """
    own = change.machines[change.came]
    told, said = (own.host, own.route_port), (asked.host, asked.route_port)
    if (told, own.leaf_urls, own.client_url) == (said, leaf_urls_of(asked), _client_url(asked)):
        return
    there = f"{own.route}, and by children at {', '.join(own.leaf_urls)}"
    reason = f"the members of {settings.path} were told that {change.came} is reached at {there}"
    remedy = "join again with the --member-host and --listen that it had, and the same --data-dir"
    raise ReplacementRefused(reason, remedy)


def begun(
    settings: MemberSettings,
    kept: Succession | None,
    lost: str,
    asked: MemberRequest,
    there: Survivors,
    before: str,
    now_ms: int,
) -> Succession:
    """The change by which a machine takes the place of one; `before` signs for routes now.

    What all show to children is not signed yet, if they show anything. Raises ReplacementRefused.
    """
    came, path = name_for(settings, kept), settings.path
    left = [name for name in settings.keys if name != lost]
    _check_fits(settings, asked, there, left)
    hosts = {name: there.hosts[name] for name in left}
    hosts[came] = asked.host, asked.route_port
    urls = {**{name: there.leaf_urls[name] for name in left}, came: leaf_urls_of(asked)}
    keys = {**{name: settings.keys[name] for name in left}, came: asked.key}
    clients = {name: settings.client_urls.get(name, "") for name in left}
    clients[came] = _client_url(asked)
    authority = Authority.make(authority_name(hosts, str(path), settings.cluster.tree), now_ms)
    until_ms = valid_until(authority.certificate)
    machines = {}
    for name, (host, port) in hosts.items():
        key = new_key()
        request = signing_request(key, list(dict.fromkeys((host, LOOPBACK))))
        certificate = authority.issue(request, now_ms, until_ms)
        machines[name] = Machine(
            host, port, urls[name], clients[name], keys[name].hex(), certificate, key
        )
    former = tuple(dict.fromkeys([*former_of(settings, kept), lost]))
    shown = LeafCertificate("", new_key(), "") if settings.listens else None
    number = max(settings.applied[0], kept.number if kept is not None else 0) + 1
    public = authority.certificate
    return Succession(number, TRUSTED, lost, came, machines, before, public, former, shown)


def _client_url(asked: MemberRequest) -> str:
    """Where clients on its machine reach a server, "" if the others are elsewhere."""
    return f"nats://{LOOPBACK}:{asked.client_port}" if is_loopback(asked.host) else ""


def authority_name(members: Iterable[str], path: str, tree: str) -> str:
    """What the authority of the routes is called: by it one that is none any more knows that."""
    return f"{','.join(members)} of {path} of {tree}"


def members_in(authority: str) -> tuple[str, ...]:
    """Whom an authority of routes is of, by its name; none if that does not say it."""
    names, of, _ = authority.partition(" of ")
    return tuple(names.split(",")) if of and names != "members" else ()


def shown_request(change: Succession) -> str:
    """What the tree's authority is to sign, that all members show it to children."""
    assert change.shown is not None
    return signing_request(change.shown.key, served_names(change.leaf_urls))


def told(settings: MemberSettings, change: Succession, accounts: AccountSeeds) -> Founding:
    """What makes the machine the member that it is to be."""
    name = change.came
    own = change.machines[name]
    form = {
        "tree": settings.cluster.tree,
        "path": str(settings.path),
        "password": settings.cluster.password,
        "tls": True,
        "leafUrls": list(change.leaf_urls),
        "clientUrls": {it: at.client_url for it, at in change.machines.items() if at.client_url},
        "keys": {it: at.key for it, at in change.machines.items()},
        "member": name,
        "host": LOOPBACK if is_loopback(own.host) else EVERYWHERE,
        "port": own.route_port,
        "routes": [at.route for it, at in change.machines.items() if it != name],
        "listens": list(own.leaf_urls) if change.shown is not None else [],
        "applied": [change.number, LEFT],
    }
    shown = asdict(change.shown) if change.shown is not None else {}
    authority = change.authority
    return Founding(form, own.certificate, own.route_key, authority, asdict(accounts), shown)


def _check_fits(
    settings: MemberSettings, asked: MemberRequest, there: Survivors, left: Collection[str]
) -> None:
    path, again = settings.path, "say another --member-host or --listen, and join again"
    if silent := [name for name in left if name not in there.leaf_urls]:
        reason = f"member {silent[0]} of {path} does not say where children reach it"
        raise ReplacementRefused(reason, "install this release there, and start it again")
    if why := misfit(asked):
        raise ReplacementRefused(why, again)
    away = bool(settings.listens)
    if away is is_loopback(asked.host):
        where = "say where others reach them" if away else "are all on one machine"
        raise ReplacementRefused(f"the members of {path} {where}, unlike this one", again)
    routes = {f"{host}:{port}" for host, port in (there.hosts[name] for name in left)}
    taken = {*routes, *(url for name in left for url in there.leaf_urls[name])}
    own = {f"{asked.host}:{asked.route_port}", *leaf_urls_of(asked)}
    if twice := sorted(own & taken):
        reason = f"another member of {path} is reached at {twice[0]} already"
        raise ReplacementRefused(reason, again)
