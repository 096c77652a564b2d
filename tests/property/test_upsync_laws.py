"""What lies at the parent ends equal to the space, for any order, loss, restart and wiping."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.ports import CopiesPlace
from relay.syncer.mirror import EraseCopiesBefore, EraseCopy, Mirror, SendCopy
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import EDGE_MAX_BYTES, WRITE_EVERY_SECONDS

NAMES = "abcdef"
MEGABYTE = 1024 * 1024
FATES = ("done", "done", "done", "lost", "unanswered")


def key(name):
    return ObjectKey("", "configmaps", "scans", name)


@dataclass
class Stream:
    """The copies at the parent: by key where, and what."""

    since: str = "1"
    last: int = 0
    kept: dict = field(default_factory=dict)

    def put(self, at, content):
        self.last += 1
        self.kept[at] = (self.last, content)
        return self.last

    def erase_before(self, place):
        self.kept = {at: it for at, it in self.kept.items() if it[0] >= place}

    def place(self):
        return CopiesPlace(self.since, self.last, len(self.kept))

    def copy(self):
        return Stream(self.since, self.last, dict(self.kept))


class World:
    """A space, an edge's mirror of it, the parent's stream, and what is under way between them."""

    def __init__(self, make=Mirror, sizes=10):
        self.make, self.now, self.versions = make, 0.0, 0
        self.space, self.meant = {}, set(NAMES)
        self.stream, self.backup = Stream(), Stream()
        self.made, self.sizes = 1, sizes
        self.mirror, self.linked = make(), False
        self.told, self.under_way, self.written_at = [], [], {}

    # What happens.

    def change(self, at):
        name = NAMES[at % len(NAMES)]
        self.versions += 1
        self.space[name] = self.versions
        self.told.append(name)

    def end(self, at):
        name = NAMES[at % len(NAMES)]
        if self.space.pop(name, None):
            self.told.append(name)

    def tell(self, at):
        """The watch says how some object is now, or that it is gone."""
        if self.told:
            name = self.told.pop(at % len(self.told))
            if name not in self.meant:
                return
            if name in self.space:
                self.mirror.put(key(name), str(self.space[name]), self.now)
            else:
                self.mirror.remove(key(name), self.now)

    def relist(self, at=0):
        listed = {key(n): str(v) for n, v in self.space.items() if n in self.meant}
        self.mirror.listed("", "configmaps", "", listed, self.now)
        self.told = []

    def choose(self, at):
        """Other objects are meant from now on."""
        self.meant = {name for place, name in enumerate(NAMES) if at >> place & 1}
        self.mirror.keep_only(lambda k: k.name in self.meant, self.now)
        self.relist()

    def act(self, at):
        if self.linked and len(self.under_way) < 3:
            action = self.mirror.next(self.now, may_sweep=not self.told)
            if action is not None:
                if isinstance(action, SendCopy):
                    written = self.written_at.get(action.key)
                    assert written is None or self.now >= written + WRITE_EVERY_SECONDS
                self.under_way.append((action, self.mirror.epoch, self.content(action)))

    def content(self, action):
        return self.space.get(action.key.name) if isinstance(action, SendCopy) else None

    def finish(self, at, fate=""):
        """An action comes to its end: done, lost on its way, or done and never answered."""
        if not self.under_way:
            return
        fate = fate or FATES[at % len(FATES)]
        action, epoch, content = self.under_way.pop(at % len(self.under_way))
        mirror, answered = self.mirror, fate == "done"
        report = self.perform(action, content) if fate != "lost" else None
        if report is not None and answered and epoch == mirror.epoch:
            report()
        else:
            mirror.failed(action, self.now)
            self.linked = False

    def perform(self, action, content):
        mirror = self.mirror
        match action:
            case EraseCopiesBefore(before):
                self.stream.erase_before(before)
                return mirror.erased_before
            case EraseCopy(at):
                self.stream.kept.pop(at, None)
                return lambda: mirror.erased(at, self.now)
            case SendCopy(at) if content is None:
                return lambda: mirror.not_found(at, self.now)
            case SendCopy(at):
                return self.send(at, content)

    def send(self, at, version):
        mirror, digest, size = self.mirror, b"%d" % version, self.size_of(version)
        if mirror.is_held(at, digest):
            return lambda: mirror.confirm_unchanged(at, str(version), self.now)
        if full := mirror.reserve(at, size):
            return lambda: mirror.put_unfit(at, str(version), full, size, self.now)
        place = self.stream.put(at, version)
        self.written_at[at] = self.now
        return lambda: mirror.sent(at, str(version), digest, size, place, self.now)

    def size_of(self, version):
        return (version * 7919) % self.sizes + 1

    def wait(self, at):
        self.now += at + 1

    def link(self, at=0):
        self.linked = True
        self.mirror.begin_session(self.stream.place(), self.now)

    def cut(self, at):
        self.linked = False
        while self.under_way:
            self.finish(0, "lost" if at % 2 else "unanswered")

    def restart(self, at):
        self.cut(at)
        self.mirror, self.written_at = self.make(), {}
        self.relist()
        self.link()

    def wipe(self, at):
        self.cut(at)
        self.made += 1
        self.stream = Stream(str(self.made))

    def back_up(self, at):
        self.backup = self.stream.copy()

    def restore(self, at):
        self.cut(at)
        self.stream = self.backup.copy()

    # The law.

    def settle(self):
        self.cut(0)
        self.relist()
        self.link()
        for _ in range(500):
            self.wait(WRITE_EVERY_SECONDS)
            if not self.linked:
                self.link()
            for _ in range(3):
                self.act(0)
            while self.under_way:
                self.finish(0, "done")
            self.mirror.assert_invariants()
            if self.mirror.is_complete and self.mirror.behind_since is None:
                break
        assert self.mirror.is_complete, "not all is said"
        assert self.mirror.behind_since is None, "something is still to be done"
        left_out = {k for k, _ in self.mirror.faults(len(NAMES))}
        wanted = {
            key(name): version
            for name, version in self.space.items()
            if name in self.meant and key(name) not in left_out
        }
        assert {at: version for at, (_, version) in self.stream.kept.items()} == wanted
        return left_out


ACTS = ("change", "change", "end", "tell", "tell", "relist", "act", "act", "act", "finish")
ACTS += ("finish", "finish", "wait", "link", "cut", "restart", "wipe", "choose", "back_up")
acts = st.lists(st.tuples(st.sampled_from((*ACTS, "restore")), st.integers(0, 63)), max_size=80)


def live(world, story):
    for what, at in story:
        getattr(world, what)(at)
        world.mirror.assert_invariants()
    return world.settle()


@given(acts)
def test_what_lies_at_the_parent_ends_equal_to_the_space(story):
    assert live(World(), story) == set()


@given(acts)
def test_what_finds_no_room_is_named_and_all_else_is_there(story):
    world = World(sizes=6 * MEGABYTE)
    left_out = live(world, story)
    there = sum(world.size_of(version) for _, version in world.stream.kept.values())
    assert there <= EDGE_MAX_BYTES
    for at in left_out:
        assert there + world.size_of(world.space[at.name]) + 10_000 > EDGE_MAX_BYTES


# Faults that a hurried change might make; each must be found.


class DeletedReturns(Mirror):
    """What ended while the edge was away stays at the parent."""

    def begin_session(self, place, now):
        super().begin_session(place, now)
        self._sweep_before = 0


class NothingGoes(Mirror):
    """What the space says to be gone is left."""

    def remove(self, key, now):
        self._seen.pop(key, None)
        self._clean(key)
        self._look(key)


class TrustsAnyPlace(Mirror):
    """A parent that was wiped or restored counts as the one that was left."""

    def _goes_on(self, place):
        return self._place is not None


class SweepsEarly(Mirror):
    """What a former run said goes before this one has said it; what is under way goes, too."""

    def begin_session(self, place, now):
        super().begin_session(place, now)
        if self._sweep_before:
            self._sweep_before += 3


class ForgetsFailures(Mirror):
    """What was lost on its way counts as done."""

    def failed(self, action, now):
        if not isinstance(action, EraseCopiesBefore):
            self._busy.discard(action.key)
            self._clean(action.key)
        else:
            super().failed(action, now)


class KeepsWhatIsNotMeant(Mirror):
    """A clause that selects no more takes nothing away."""

    def keep_only(self, is_meant, now):
        pass

    def listed(self, group, resource, namespace, versions, now):
        for at, version in versions.items():
            self.put(at, version, now)


MUTANTS = (
    DeletedReturns,
    NothingGoes,
    TrustsAnyPlace,
    SweepsEarly,
    ForgetsFailures,
    KeepsWhatIsNotMeant,
)
SEEDS = 400


@pytest.mark.parametrize("mutant", MUTANTS)
def test_planted_faults_are_found(mutant):
    assert any(fails(mutant, seed) for seed in range(SEEDS)), f"{mutant.__doc__} is not noticed"


def test_the_same_stories_find_nothing_in_what_is_sound():
    for seed in range(SEEDS):
        assert not fails(Mirror, seed), f"seed {seed}"


def fails(mirror, seed):
    dice = random.Random(seed)
    story = [(dice.choice((*ACTS, "restore")), dice.randrange(64)) for _ in range(60)]
    try:
        live(World(mirror), story)
    except AssertionError:
        return True
    return False
