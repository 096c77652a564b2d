"""What the members of a node say of a release, in the facts that they tell each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leafcast.node.member_change import UnderWay
from leafcast.node.member_forms import FOLLOWS, LEADS, VERSION, Form, member_forms
from leafcast.upgrades.standing import Choice, ReleaseStanding
from leafcast.upgrades.turns import MemberWord
from relay.adapters.jetstream.member_presence import ACTIVE, ROLE, STANDBY
from relay.adapters.jetstream.member_servers import MemberServer
from schemas.releases.release_folder import WHY_MAX, LaunchNote, WantedRelease
from schemas.releases.release_refused import ReleaseRefused
from schemas.reports.running import ReleaseState
from schemas.values.identity import MailKey

UPGRADE, RELEASE = "upgrade", "release"
"""The facts of a member: how far it is, and (the active one's) what the tree wants of the node."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What the active member says that the tree wants, and under which key its record lies."""

    choice: Choice
    key: MailKey

    def form(self) -> Form:
        wanted = self.choice.wanted
        return {
            "version": wanted.version,
            "manifest": wanted.manifest,
            "attempt": wanted.attempt,
            "wave": self.choice.wave,
            "mayBegin": self.choice.may_begin,
            "key": self.key,
        }


def told_by(facts: Mapping[str, Facts], before: Told | None) -> Told | None:
    """What the active member says is wanted; what was told before while none says anything."""
    for said in facts.values():
        if said.get(ROLE) != ACTIVE or not isinstance(form := said.get(RELEASE), Mapping):
            continue
        if not form:
            return None
        try:
            wanted = WantedRelease(form["version"], form["manifest"], form["attempt"])
            choice = Choice(wanted, int(form["wave"]), may_begin=form["mayBegin"] is True)
            return Told(choice, MailKey(str(form["key"])))
        except (ReleaseRefused, KeyError, ValueError, TypeError):
            continue
    return before


def upgrade_form(
    standing: ReleaseStanding, choice: Choice | None, launcher: LaunchNote | None, *, claims: bool
) -> Form:
    """What a member says of itself."""
    return {
        "state": str(standing.state),
        "why": standing.why[:WHY_MAX],
        "manifest": choice.wanted.manifest if choice is not None else "",
        "attempt": choice.wanted.attempt if choice is not None else 0,
        "onTrial": launcher is not None and launcher.is_on_trial,
        "claims": claims,
    }


def words_in(
    facts: Mapping[str, Facts], servers: Iterable[MemberServer], change: UnderWay | None
) -> list[MemberWord]:
    """What each member says, and whether it is in step; also of one that is not heard."""
    return [
        _word(form, facts.get(form["name"], {})) for form in member_forms(facts, servers, change)
    ]


def _word(form: Form, said: Facts) -> MemberWord:
    """A member of a release that knows nothing of this has no launcher."""
    told = said.get(UPGRADE)
    its: Facts = told if isinstance(told, Mapping) else {}
    try:
        state = ReleaseState(its.get("state", ReleaseState.ELSEWHERE))
    except ValueError:
        state = ReleaseState.ELSEWHERE
    attempt = its.get("attempt")
    return MemberWord(
        str(form["name"]),
        str(said.get(VERSION, "")),
        state,
        str(its.get("why", "")),
        str(its.get("manifest", "")),
        attempt if isinstance(attempt, int) else 0,
        is_active=form["role"] == ACTIVE,
        on_trial=its.get("onTrial") is True,
        claims=its.get("claims") is True,
        trouble=_trouble(form),
    )


def _trouble(form: Form) -> str:
    """Why no other member may be restarted now, as the doctor judges it; "" if one may."""
    if form["change"]:
        return f"is being replaced: {form['change']}"
    if form["role"] not in (ACTIVE, STANDBY):
        return "is not heard"
    if form["server"] not in (LEADS, FOLLOWS):
        return f"has a server that is {form['server']}"
    if not form["sameChildren"]:
        return "does not let in the same children as the active one yet"
    return f"does not become active: {form['clock']}" if form["clock"] else ""
