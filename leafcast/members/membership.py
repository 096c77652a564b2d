"""Who the members of a node are while one takes the place of another: a file of the node's state.

Each change is a number, and goes on in steps. Whoever is active goes on with it: nothing of it is
known but this file, and each step may be done twice. Pure but for the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from leafcast.members.addresses import bracketed
from leafcast.members.founding import LeafCertificate
from leafcast.members.settings import MEMBERSHIP_FILE, MemberSettings, route_tls
from relay.adapters.server.cluster_settings import MEMBERS
from schemas.enrolment.member_requests import KEY_BYTES
from schemas.values.codec import from_json

FILE = MEMBERSHIP_FILE
TRUSTED, SHOWN, LEFT, REMOVED, DONE = range(1, 6)
"""What is done at a step: all believe both authorities of the routes; all show certificates of the
new one; all believe that one alone; the server that is lost is none of the cluster; the new one has
caught up."""
STEPS = {
    TRUSTED: "the members learn whom they are to believe",
    SHOWN: "the members show each other new certificates",
    LEFT: "the members believe the former certificates no more",
    REMOVED: "it has to come, and to catch up",
    DONE: "done",
}


class MembershipDamaged(Exception):
    """The file says nothing; names it, and the remedy."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"{file} cannot be used ({why}): remove it, and start this member again; the others "
            "have it"
        )
        self.file = file


@dataclass(frozen=True, slots=True)
class Machine:
    """One member, as the others are told of it; PEM texts are of its routes.

    `client_url` is where clients on its machine reach its server, "" if the others are elsewhere.
    """

    host: str
    route_port: int
    leaf_urls: tuple[str, ...]
    client_url: str
    key: str
    certificate: str
    route_key: str = field(repr=False)

    @property
    def route(self) -> str:
        return f"{bracketed(self.host)}:{self.route_port}"


@dataclass(frozen=True, slots=True)
class Succession:
    """The members from now on, in order; `came` takes the place of `lost`.

    `before` and `authority` are who signs for their routes; `former` names of all that were members
    once. `shown` is what they show to children elsewhere: None if none come.
    """

    number: int
    step: int
    lost: str
    came: str
    machines: Mapping[str, Machine]
    before: str
    authority: str
    former: tuple[str, ...]
    shown: LeafCertificate | None = None

    @property
    def survivors(self) -> frozenset[str]:
        """Those who carry out the steps."""
        return frozenset(self.machines) - {self.came}

    @property
    def keys(self) -> dict[str, bytes]:
        """To whom what the members share is sealed: at no step to the one that is lost."""
        return {name: bytes.fromhex(it.key) for name, it in self.machines.items()}

    @property
    def leaf_urls(self) -> tuple[str, ...]:
        """Where servers of children dial in once it is done."""
        return tuple(url for it in self.machines.values() for url in it.leaf_urls)

    @property
    def said(self) -> str:
        """What is under way, for people; "" if nothing is."""
        if self.step == DONE:
            return ""
        return f"{self.came} comes in the place of {self.lost}: {STEPS[self.step]}"

    def at(self, step: int) -> Succession:
        """The same, that much further on."""
        return replace(self, step=step)

    def text(self) -> str:
        """What the file says."""
        return json.dumps(asdict(self), indent=2) + "\n"


def next_name(names: Iterable[str]) -> str:
    """A name that no member ever had, if these are all: a server that is back is not taken for it.

    A server with the name of one that is lost, and an empty store, could vote for one that lacks
    what was acknowledged.
    """
    numbers = [int(it[1:]) for it in names if it[:1] == "m" and it[1:].isdecimal()]
    return f"m{max([MEMBERS, *numbers]) + 1}"


def stepped(settings: MemberSettings, change: Succession, folder: Path) -> MemberSettings:
    """A member's settings once a step is carried out at it; its folder has the files for that."""
    cluster, step = settings.cluster, change.step
    cluster = replace(cluster, tls=route_tls(folder, routes_in(change)))
    done = replace(settings, cluster=cluster, keys=change.keys, applied=(change.number, step))
    if step >= SHOWN:
        others = (it.route for name, it in change.machines.items() if name != settings.name)
        done = replace(done, cluster=replace(cluster, routes=tuple(others)))
    if step >= DONE:
        urls = {name: it.client_url for name, it in change.machines.items() if it.client_url}
        done = replace(done, leaf_urls=change.leaf_urls, client_urls=urls)
    return done


def routes_in(change: Succession) -> str:
    """The folder in which a member keeps what its routes need at a step; the last one stays."""
    return f"routes-{change.number}-{min(change.step, LEFT)}"


def believed(change: Succession) -> str:
    """Who may sign for routes at a step: PEM text."""
    both = change.before + change.authority
    return both if change.step < LEFT else change.authority


def hosts_of(settings: MemberSettings, own_host: str) -> dict[str, tuple[str, int]]:
    """Where each member is reached by the others: they are in the order of their keys."""
    routes = iter(settings.cluster.routes)
    found = {}
    for name in settings.keys:
        if name == settings.name:
            found[name] = own_host, settings.cluster.port
        else:
            host, _, port = next(routes).rpartition(":")
            found[name] = host.strip("[]"), int(port)
    return found


def leaf_urls_by_name(
    settings: MemberSettings, said: Mapping[str, Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """Where children dial in at each member that says it; on one machine it is known of all."""
    if not settings.listens and len(settings.leaf_urls) == len(settings.keys):
        return {name: (url,) for name, url in zip(settings.keys, settings.leaf_urls, strict=True)}
    return {name: tuple(urls) for name, urls in said.items() if urls}


def kept_membership(folder: Path) -> Succession | None:
    """What the file says; None if no member was ever replaced. Raises MembershipDamaged."""
    file = folder / FILE
    try:
        return read_membership(file.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MembershipDamaged(file, repr(error)) from error


def read_membership(data: bytes) -> Succession:
    """What `text` said; raises ValueError, TypeError, KeyError or AttributeError."""
    form = from_json(data)
    machines = {str(name): _machine(it) for name, it in form["machines"].items()}
    change = Succession(
        int(form["number"]),
        int(form["step"]),
        str(form["lost"]),
        str(form["came"]),
        machines,
        str(form["before"]),
        str(form["authority"]),
        tuple(map(str, form["former"])),
        LeafCertificate(**form["shown"]) if form["shown"] is not None else None,
    )
    if change.step not in STEPS or change.number < 1:
        raise ValueError(f"step {change.step} of change {change.number} is none")
    if len(machines) != MEMBERS or change.came not in machines or change.lost in machines:
        raise ValueError(f"{', '.join(machines)} are not the members after {change.lost} is gone")
    return change


def _machine(form: Mapping[str, Any]) -> Machine:
    made = Machine(**{**form, "leaf_urls": tuple(map(str, form["leaf_urls"]))})
    texts = (made.host, made.client_url, made.key, made.certificate, made.route_key)
    if not all(isinstance(it, str) for it in texts) or type(made.route_port) is not int:
        raise ValueError(f"a machine at {made.host!r} is none")
    if len(bytes.fromhex(made.key)) != KEY_BYTES:
        raise ValueError(f"the key of the machine at {made.host!r} is none")
    return made
