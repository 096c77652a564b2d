"""Another certificate authority takes the place of the tree's, while nodes come and go.

The centre's own decision is driven over a tree in small: nodes that believe some authorities,
servers that show a certificate of one, links that hold if the child believes who signed. Questions
and answers are lost, and the centre is started again between any two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from leafcast.daemon.nodes.authority_steps import (
    DONE,
    AuthorityStep,
    DistributeAuthorities,
    FinishChange,
    Lacking,
    RenewCertificates,
    SwitchAuthority,
    change_steps,
)
from leafcast.node.certificate_lists import END, overlap
from leafcast.node.credentials.authorities import Authorities
from relay.adapters.tls.authority import Authority
from tests.simulation.laws import CONVERGENCE, LEAST_PRIVILEGE, NO_LOSS
from tests.simulation.world import LawBroken

Steps = Generator[AuthorityStep, Lacking, tuple[str, Lacking]]
Decide = Callable[[Authorities, bool], Steps]
LOST, CRASHES, MOVES = 0.15, 0.15, 0.3
CENTRE = "/"


def honest(found: Authorities, force: bool) -> Steps:
    """What the centre decides."""
    return change_steps(found, force=force)


@dataclass
class Member:
    """A node: whom it believes at its parent, and who signed what its own server shows."""

    believed: str
    shown: str
    away: bool = False
    # Whether it was given up by force: it joins anew.
    left_out: bool = False


@dataclass
class AuthorityTree:
    """A centre with regions and edges; `check` raises LawBroken."""

    random: Random
    decide: Decide = honest
    members: dict[str, Member] = field(default_factory=dict)
    now: Authorities = field(init=False)
    made: int = 0
    # What the centre's program remembers of whom it told what, in this run.
    told: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = Authorities(Authority(self._new(), ""))
        first = self.now.signing.certificate
        for region in range(self.random.randint(1, 3)):
            self.members[f"/r{region}"] = Member(first, first)
            for edge in range(self.random.randint(1, 3)):
                self.members[f"/r{region}/e{edge}"] = Member(first, first)
        self.members[CENTRE] = Member(first, first)

    def _new(self) -> str:
        self.made += 1
        return f"authority {self.made}\n{END}\n"

    # What people do, and chance.

    def begin(self) -> None:
        """Another one is to come, unless a change is under way."""
        if not self.now.changing:
            self.now = Authorities(self.now.signing, coming=self._new())

    def stir(self) -> None:
        """Some node goes or comes back."""
        some = self.members[self.random.choice(sorted(self.members.keys() - {CENTRE}))]
        some.away = not some.away

    def go_on(self, *, force: bool = False, faults: bool = True) -> str:
        """One run of the decision; what the change waits with."""
        steps = self.decide(self.now, force)
        try:
            lacking, step = Lacking(), next(steps)
            while True:
                lacking = self._carry_out(step, force=force, faults=faults)
                self.check()
                if faults and self.random.random() < CRASHES:
                    self.told.clear()
                    return "ended"
                step = steps.send(lacking)
        except StopIteration as end:
            doing: str = end.value[0]
            return doing

    # The steps.

    def _carry_out(self, step: AuthorityStep, *, force: bool, faults: bool) -> Lacking:
        match step:
            case DistributeAuthorities(authorities):
                return self._tell(authorities, force=force, faults=faults)
            case SwitchAuthority():
                signing = Authority(self.now.coming, "")
                self.now = Authorities(signing, former=self.now.signing.certificate)
            case RenewCertificates(_, signing):
                return self._renew(signing, force=force, faults=faults)
            case FinishChange():
                self.now = Authorities(self.now.signing)
        return {}

    def _tell(self, authorities: str, *, force: bool, faults: bool) -> Lacking:
        lacking = Lacking()
        for path in self._in_some_order():
            if self.told.get(path) == authorities:
                continue
            if self._asked(path, lambda it: self._believe(it, authorities), faults=faults):
                self.told[path] = authorities
            else:
                lacking[path] = "it is away"
        self._give_up(lacking, force=force)
        return lacking

    def _believe(self, member: Member, authorities: str) -> None:
        if overlap(member.believed, authorities):
            member.believed = authorities

    def _renew(self, signing: str, *, force: bool, faults: bool) -> Lacking:
        def certify(member: Member) -> None:
            member.shown = signing
            self._believe(member, self.now.believed)

        self.members[CENTRE].shown = signing
        servers = [p for p in self._in_some_order() if self._is_left(p, signing)]
        lacking = {p: "" for p in servers if not self._asked(p, certify, faults=faults)}
        self._give_up(lacking, force=force)
        return lacking

    def _is_left(self, path: str, signing: str) -> bool:
        """Whether others dial in there, and are shown a certificate of another authority."""
        return not _is_edge(path) and self.members[path].shown != signing

    def _asked(self, path: str, what: Callable[[Member], None], *, faults: bool) -> bool:
        """Whether a node did something, and the answer came."""
        if not self.reached(path) or (faults and self.random.random() < LOST):
            return False
        what(self.members[path])
        return not (faults and self.random.random() < LOST)

    def _give_up(self, lacking: Lacking, *, force: bool) -> None:
        """Whom force does not wait for, and all below them, may have to join anew."""
        for path in lacking if force else ():
            for other, member in self.members.items():
                member.left_out |= other == path or other.startswith(f"{path}/")

    def _in_some_order(self) -> list[str]:
        paths = sorted(self.members)
        self.random.shuffle(paths)
        return paths

    # What holds.

    def reached(self, path: str) -> bool:
        """Whether an ask comes to a node: all on the way are there, and believe their parents."""
        return all(
            not self.members[each].away and (each == CENTRE or self.linkable(each))
            for each in _way(path)
        )

    def linkable(self, path: str) -> bool:
        """Whether a node would believe its parent's server, once it is there."""
        return overlap(self.members[path].believed, self.members[_parent(path)].shown)

    def check(self) -> None:
        """No node is cut off, also not one that is away: it is believed again when it is back."""
        for path, member in self.members.items():
            if path != CENTRE and not member.left_out and not self.linkable(path):
                raise LawBroken(NO_LOSS, f"{path} does not believe the server of {_parent(path)}")

    def end(self) -> None:
        """All are back, and nothing goes wrong any more: the change ends, as it should."""
        for member in self.members.values():
            member.away = False
        for path in sorted(self.members):
            if self.members[path].left_out:
                self._join_anew(path)
        for _ in range(3):
            doing = self.go_on(faults=False)
        if doing != DONE:
            raise LawBroken(CONVERGENCE, f"the change waits with {doing}, and nobody is away")
        signing = self.now.signing.certificate
        for path, member in self.members.items():
            if path != CENTRE and member.believed != signing:
                raise LawBroken(LEAST_PRIVILEGE, f"{path} believes a former authority")
            if self._is_left(path, signing):
                raise LawBroken(CONVERGENCE, f"{path} shows a certificate of a former one")

    def _join_anew(self, path: str) -> None:
        """By a new token, which names whom to believe now; its server gets a new certificate."""
        member = self.members[path]
        member.believed, member.left_out = self.now.believed, False
        member.shown = self.now.signing.certificate
        self.told.pop(path, None)


def live(seed: int, decide: Decide = honest) -> AuthorityTree:
    """Three changes; nodes come and go meanwhile, and the centre's program ends at times.

    Each is asked for three times while one edge stays away, and waits for it, but by force. Who
    was not waited for joins anew.
    """
    tree = AuthorityTree(Random(f"authority {seed}"), decide)
    random = tree.random
    for _ in range(3):
        gone = tree.members[random.choice([p for p in sorted(tree.members) if _is_edge(p)])]
        before = tree.made
        for _ in range(3):
            gone.away = True
            tree.begin()
            _pass(tree, stays=gone)
        if tree.made > before + 1:
            raise LawBroken(NO_LOSS, "a change came to its end without who was away")
        if random.random() < 1 / 4:
            tree.go_on(force=True)
        gone.away = False
        _pass(tree)
        tree.end()
    return tree


def _pass(tree: AuthorityTree, stays: Member | None = None) -> None:
    """Some time goes by; one of them stays away."""
    for _ in range(tree.random.randint(1, 6)):
        if tree.random.random() < MOVES:
            tree.stir()
        if stays is not None:
            stays.away = True
        tree.go_on()
        tree.check()


def _is_edge(path: str) -> bool:
    return path.count("/") == 2


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or CENTRE


def _way(path: str) -> Iterator[str]:
    """The nodes from the centre to this one."""
    if path != CENTRE:
        yield from _way(_parent(path))
    yield path
