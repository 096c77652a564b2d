"""The HealthRules that placements bring to a destination, known before what they judge is taken."""

from __future__ import annotations

from collections.abc import Mapping

from relay.core.content.content import Content
from relay.core.content.owners import ContentOwner, OwnerKind
from relay.core.destination.claims import DesiredObject
from schemas.content.blobs import Reference
from schemas.records.health_rules import HealthProgram
from schemas.reports.collectors import read_program_set
from schemas.values.identity import ContentHash, MailKey
from schemas.values.refusals import RecordRefused

_Rules = dict[tuple[str, str], HealthProgram]


class PlacementHealthRules:
    """What each placement says of kinds, as soon as its program set is here."""

    def __init__(self, content: Content) -> None:
        self._content = content
        # Where each placement in force says it, and where that was read last.
        self._named: dict[MailKey, tuple[Reference, ...]] = {}
        self._read: dict[MailKey, tuple[Reference, ...]] = {}
        self._rules: dict[MailKey, _Rules] = {}
        # Whether they changed since they were last told.
        self.is_news = False

    def name(self, key: MailKey, programs: tuple[Reference, ...]) -> None:
        """Learn where a placement in force says it; () if nowhere."""
        self._content.end(_owner(key))
        self._named[key] = programs
        if not programs:
            self._put(key, (), {})

    def fetch(self, key: MailKey) -> None:
        """Read what a placement says whose objects are here already."""
        named = self._named[key]
        if self._read.get(key) != named and self._content.begin(_owner(key), named, read=True):
            self.supplied(key)

    def supplied(self, key: MailKey) -> None:
        """Go on with a placement whose rules are here."""
        self.take(key, self._content.plains(_owner(key)))
        self._content.end(_owner(key))

    def take(self, key: MailKey, plains: Mapping[ContentHash, bytes]) -> None:
        """Read it out of content that is all here; of a form that is not known it is nothing."""
        rules: _Rules = {}
        for reference in self._named[key]:
            try:
                found = read_program_set(plains[reference.address]).health
            except RecordRefused:
                continue
            rules |= {(rule.group, rule.resource): rule for rule in found}
        self._put(key, self._named[key], rules)

    def forget(self, key: MailKey) -> None:
        """The placement is not meant here any more."""
        self._content.end(_owner(key))
        self._named.pop(key, None)
        self._put(key, (), {})

    def of(self, wanted: DesiredObject) -> HealthProgram | None:
        """The rule by which an object that is wanted counts."""
        kind = wanted.key.group_resource
        for placement in wanted.placements if self._rules else ():
            rule = self._rules.get(MailKey(placement), {}).get(kind)
            if rule is not None:
                return rule
        return None

    def take_news(self) -> bool:
        """Whether they changed since this was asked last."""
        news, self.is_news = self.is_news, False
        return news

    def _put(self, key: MailKey, read: tuple[Reference, ...], rules: _Rules) -> None:
        self._read.pop(key, None)
        if read:
            self._read[key] = read
        if self._rules.get(key, {}) == rules:
            return
        self._rules.pop(key, None)
        if rules:
            self._rules[key] = rules
        self.is_news = True


def _owner(key: MailKey) -> ContentOwner:
    return ContentOwner(OwnerKind.HEALTH_RULES, key)
