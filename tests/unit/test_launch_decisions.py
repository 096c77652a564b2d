"""What the launcher decides: one of two versions runs, whatever happens between two steps."""

import random
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from leafcast.launcher.decisions import (
    Install,
    InstallResult,
    LaunchLimits,
    Seen,
    Start,
    Stop,
    Tidy,
    decide,
)
from schemas.releases.release_folder import LaunchNote, LaunchState, WantedRelease

OLD, NEW = "0.1.0", "0.3.0"
WISH = WantedRelease(NEW, "a" * 64)
LIMITS = LaunchLimits(start_seconds=30, soak_seconds=60, patience_seconds=100, judge_seconds=20)
RUNNING = LaunchNote(OLD)
TRIED = LaunchNote(NEW, OLD, LaunchState.STARTING, manifest=WISH.manifest, starts=1)
SOAKING = replace(TRIED, state=LaunchState.SOAKING)


def seen(**more):
    said = {"now": 1000.0, "startable": frozenset({OLD, NEW}), "base": OLD, "wish": WISH}
    return Seen(**{**said, **more})


def up(version, **more):
    """It runs and is ready since a while."""
    return seen(
        **{"child": version, "child_since": 900.0, "first_ready": 990.0, "is_ready": True, **more}
    )


def apart(version, seconds, **more):
    """It runs, and is not ready for so long."""
    since = 1000.0 - seconds
    said = {"child": version, "child_since": since, "unready_since": since, "unready_why": "far"}
    return seen(**{**said, **more})


def test_what_is_wanted_is_installed_beside_what_runs():
    note, steps = decide(RUNNING, up(OLD), LIMITS)
    assert (note.running, note.state, steps) == (OLD, LaunchState.INSTALLING, [Install(WISH)])
    assert decide(note, up(OLD, installing=WISH), LIMITS) == (note, [])
    done = InstallResult(WISH)
    after, steps = decide(note, up(OLD, installed=done), LIMITS)
    assert (after.running, after.former, after.state) == (NEW, OLD, LaunchState.STARTING)
    assert steps == [Stop()]
    after, steps = decide(after, seen(installed=done), LIMITS)
    assert (after.starts, steps) == (1, [Start(NEW)])


def test_what_is_refused_stops_nothing_and_is_not_tried_again():
    note, _ = decide(RUNNING, up(OLD), LIMITS)
    note, steps = decide(note, up(OLD, installed=InstallResult(WISH, "unsigned")), LIMITS)
    assert (note.running, note.state, note.why) == (OLD, LaunchState.REFUSED, "unsigned")
    assert decide(note, up(OLD), LIMITS) == (note, [])
    assert steps == []
    again = replace(WISH, attempt=1)
    assert decide(note, up(OLD, wish=again), LIMITS)[1] == [Install(again)]


def test_a_place_without_its_parent_waits_before_it_changes():
    note, _ = decide(RUNNING, up(OLD), LIMITS)
    done = InstallResult(WISH)
    after, steps = decide(note, apart(OLD, 50, installed=done), LIMITS)
    assert (after.running, after.state, steps) == (OLD, LaunchState.INSTALLING, [])
    assert after.why == "it waits until 0.1.0 is in session with its parent"
    # One that is away for long is not mended by waiting.
    assert decide(note, apart(OLD, 100, installed=done), LIMITS)[0].running == NEW


def test_one_of_several_machines_goes_when_it_is_its_turn_and_goes_back_without():
    note, _ = decide(RUNNING, up(OLD), LIMITS)
    ready = {"installed": InstallResult(WISH), "turn_waits": "m2 goes before it"}
    after, steps = decide(note, up(OLD, **ready), LIMITS)
    assert (after.running, after.state, steps) == (OLD, LaunchState.INSTALLING, [])
    assert after.why == "it waits for its turn: m2 goes before it"
    # No patience ends that.
    assert decide(note, apart(OLD, 100_000, **ready), LIMITS)[0].running == OLD
    # Nor is what ended by itself replaced meanwhile.
    ended = seen(ended="code 1", again_at=1000.0, **ready)
    assert decide(note, ended, LIMITS)[1] == [Start(OLD)]
    after, steps = decide(after, up(OLD, **{**ready, "turn_waits": ""}), LIMITS)
    assert (after.running, after.state, steps) == (NEW, LaunchState.STARTING, [Stop()])
    back, _ = decide(TRIED, seen(ended="code 3", turn_waits="m2 is not heard"), LIMITS)
    assert (back.running, back.state) == (OLD, LaunchState.ROLLED_BACK)


@pytest.mark.parametrize(
    ("note", "sight", "why"),
    [
        (TRIED, seen(ended="code 3"), "0.3.0 ended before it was in session: code 3"),
        (replace(TRIED, starts=3), seen(), "0.3.0 was started 3 times, and the machine or the"),
        (SOAKING, seen(ended="signal 11"), "0.3.0 ended while it was tried: signal 11"),
        (SOAKING, up(NEW, startable=frozenset({OLD})), "what was installed of 0.3.0 is gone"),
        (TRIED, seen(startable=frozenset({OLD})), "what was installed of 0.3.0 is gone"),
    ],
)
def test_what_does_not_stand_its_trial_gives_way_to_the_former(note, sight, why):
    after, steps = decide(note, sight, LIMITS)
    assert (after.running, after.state) == (OLD, LaunchState.ROLLED_BACK)
    assert after.why.startswith(why)
    # What runs has its files until it ended, and the former one waits for no removal of them.
    stop = [Stop()] if sight.child else []
    assert steps == [*stop, Start(OLD), Tidy(frozenset({OLD}))]
    # And it is not tried again by itself.
    assert decide(after, up(OLD), LIMITS) == (after, [])


@pytest.mark.parametrize(
    ("note", "sight", "why"),
    [
        (TRIED, apart(NEW, 30), "0.3.0 was not in session with its parent in 30 s: far"),
        (SOAKING, apart(NEW, 30, first_ready=10.0), "0.3.0 lost its parent for 30 s while"),
    ],
)
def test_what_is_not_in_session_is_at_fault_only_if_the_former_one_is(note, sight, why):
    doubted, steps = decide(note, sight, LIMITS)
    assert (doubted.running, doubted.state, steps) == (OLD, LaunchState.INSTALLING, [Stop()])
    assert doubted.why.startswith(f"it is looked whether 0.1.0 is in session: {why}")
    done = InstallResult(WISH)
    assert decide(doubted, apart(OLD, 10, installed=done), LIMITS) == (doubted, [])
    after, steps = decide(doubted, up(OLD, installed=done), LIMITS)
    assert (after.running, after.state, steps) == (OLD, LaunchState.ROLLED_BACK, [Tidy({OLD})])
    assert after.why.startswith(why)
    assert (after.doubt, decide(after, up(OLD), LIMITS)) == ("", (after, []))
    # The parent is away: nobody says that it failed, and it waits.
    away, steps = decide(doubted, apart(OLD, 20, installed=done), LIMITS)
    assert (away.running, away.state, away.undecided) == (OLD, LaunchState.INSTALLING, 1)
    assert steps == []
    waits, steps = decide(away, apart(OLD, 199, installed=done), LIMITS)
    assert (waits.running, steps) == (OLD, [])
    assert decide(away, apart(OLD, 200, installed=done), LIMITS)[0].running == NEW
    assert decide(away, up(OLD, installed=done), LIMITS)[0].running == OLD
    again, _ = decide(away, up(OLD, installed=done, first_ready=960.0), LIMITS)
    assert (again.running, again.state) == (NEW, LaunchState.STARTING)
    # One that is chosen meanwhile begins without a doubt.
    other = WantedRelease("0.4.0", "b" * 64)
    note, steps = decide(doubted, up(OLD, wish=other), LIMITS)
    assert (note.doubt, steps) == ("", [Install(other)])


def test_what_was_refused_for_a_passing_reason_is_tried_again_by_itself():
    full = InstallResult(WISH, "disk: full", is_passing=True)
    note, _ = decide(RUNNING, up(OLD), LIMITS)
    note, steps = decide(note, up(OLD, installed=full, install_again_at=1060.0), LIMITS)
    assert (note.state, note.why, steps) == (LaunchState.REFUSED, "disk: full", [])
    due = up(OLD, now=1060.0, installed=full, install_again_at=1060.0)
    note, steps = decide(note, due, LIMITS)
    assert (note.state, note.why, steps) == (LaunchState.INSTALLING, "disk: full", [Install(WISH)])
    after, _ = decide(note, up(OLD, installed=InstallResult(WISH)), LIMITS)
    assert (after.running, after.state) == (NEW, LaunchState.STARTING)


def test_what_stands_its_trial_is_healthy():
    note, steps = decide(TRIED, up(NEW), LIMITS)
    assert (note.state, steps) == (LaunchState.SOAKING, [])
    assert decide(note, up(NEW), LIMITS) == (note, [])
    note, steps = decide(note, up(NEW, first_ready=940.0), LIMITS)
    assert (note.state, steps) == (LaunchState.HEALTHY, [Tidy(frozenset({OLD, NEW}))])
    # A link that breaks for a moment ends no trial, and makes nothing healthy.
    broken = apart(NEW, 10, child_since=900.0, first_ready=910.0)
    assert decide(SOAKING, broken, LIMITS) == (SOAKING, [])


def test_a_trial_is_brought_to_its_end_before_another_begins():
    other = WantedRelease("0.4.0", "b" * 64)
    assert decide(SOAKING, up(NEW, wish=other), LIMITS) == (SOAKING, [])
    healthy = replace(SOAKING, state=LaunchState.HEALTHY)
    assert decide(healthy, up(NEW, wish=other), LIMITS)[1] == [Install(other)]


def test_a_wish_that_is_taken_back_changes_nothing():
    note, _ = decide(RUNNING, up(OLD), LIMITS)
    assert decide(note, up(OLD, wish=None), LIMITS) == (RUNNING, [])
    assert decide(RUNNING, up(OLD, wish=None), LIMITS) == (RUNNING, [])


def test_what_was_good_and_is_gone_is_installed_anew():
    healthy = replace(SOAKING, state=LaunchState.HEALTHY)
    note, steps = decide(healthy, seen(startable=frozenset({OLD})), LIMITS)
    assert (note.running, steps) == (OLD, [Install(WISH), Start(OLD)])


DEAD = "ended 3 times in a row before it was ready: code 3"
GOOD = replace(SOAKING, state=LaunchState.HEALTHY, starts=0)


def died(*versions, **more):
    """What is to run ended just now; these came up no more."""
    return seen(ended="code 3", again_at=1060.0, dead=dict.fromkeys(versions, DEAD), **more)


def test_what_was_good_and_comes_up_no_more_gives_way_and_is_put_there_anew():
    note, steps = decide(GOOD, died(NEW), LIMITS)
    assert (note.running, note.former, note.state) == (OLD, NEW, LaunchState.INSTALLING)
    assert (note.why, steps) == (f"0.3.0 {DEAD}", [Install(WISH), Start(OLD)])
    waits, _ = decide(note, apart(OLD, 5, installed=InstallResult(WISH)), LIMITS)
    assert waits.why.startswith(f"0.3.0 {DEAD}; it waits until 0.1.0 is in session")
    lacks, _ = decide(note, up(OLD, installed=InstallResult(WISH, "no piece")), LIMITS)
    assert (lacks.state, lacks.why) == (LaunchState.REFUSED, f"0.3.0 {DEAD}; no piece")
    tried, steps = decide(note, up(OLD, installed=InstallResult(WISH)), LIMITS)
    assert (tried.running, tried.former, tried.state) == (NEW, OLD, LaunchState.STARTING)
    assert (tried.damage, steps) == ("", [Stop()])


def test_without_anything_chosen_the_former_one_runs_and_says_why():
    note, steps = decide(GOOD, died(NEW, wish=None), LIMITS)
    assert (note.running, note.state, steps) == (OLD, LaunchState.ROLLED_BACK, [Start(OLD)])
    assert note.why == f"0.3.0 {DEAD}"
    assert decide(note, up(OLD, wish=None), LIMITS) == (note, [])


def test_what_came_with_the_launcher_runs_where_the_former_one_ends_likewise():
    there = {"startable": frozenset({OLD, "0.2.0", NEW})}
    first, _ = decide(replace(GOOD, former="0.2.0"), died(NEW, **there), LIMITS)
    assert (first.running, first.former) == ("0.2.0", NEW)
    second, steps = decide(first, died(NEW, "0.2.0", installing=WISH, **there), LIMITS)
    assert (second.running, second.former, steps) == (OLD, NEW, [Start(OLD)])
    # It is none of the files if all end: what was good runs on, and counts as such.
    third, steps = decide(second, died(NEW, "0.2.0", OLD, **there), LIMITS)
    assert (third.running, third.state, steps) == (NEW, LaunchState.HEALTHY, [Start(NEW)])
    assert "the cause is none of what is installed" in third.why
    for again in (died(NEW, "0.2.0", OLD, **there), apart(NEW, 9, **there)):
        assert decide(third, again, LIMITS) == (third, [])


def test_what_runs_or_is_alone_is_not_taken_back():
    runs = replace(died(NEW), child=NEW, ended="")
    assert decide(GOOD, runs, LIMITS) == (GOOD, [])
    assert decide(RUNNING, died(OLD, wish=None), LIMITS) == (RUNNING, [])
    assert decide(GOOD, died(NEW, OLD), LIMITS) == (GOOD, [])


def test_what_is_changed_by_hand_below_the_launcher_runs_and_is_no_fault():
    by_hand = seen(base="0.2.0", startable=frozenset({"0.2.0"}), wish=None)
    after = LaunchNote("0.2.0", base="0.2.0")
    assert decide(RUNNING, by_hand, LIMITS) == (after, [Start("0.2.0")])
    older = replace(by_hand, base="0.0.9", startable=frozenset({"0.0.9"}))
    assert decide(RUNNING, older, LIMITS) == (LaunchNote("0.0.9"), [Start("0.0.9")])


PACKAGE = "0.4.0"
CHOSEN = replace(SOAKING, state=LaunchState.HEALTHY, base=OLD, starts=0)


def packaged(version=PACKAGE, **more):
    """The launcher is of that version, and begins."""
    return seen(base=version, startable=frozenset({version, NEW}), **more)


def test_a_newer_package_stays_until_the_tree_chooses_another_release():
    note, steps = decide(CHOSEN, packaged(), LIMITS)
    assert (note.running, note.former, steps) == (PACKAGE, NEW, [Start(PACKAGE)])
    assert note.state is LaunchState.HEALTHY
    assert note.why.startswith("0.4.0 came by a package, and is newer than 0.3.0: it stays")
    there = {"base": PACKAGE, "startable": frozenset({PACKAGE, NEW})}
    assert decide(note, up(PACKAGE, **there), LIMITS) == (note, [])
    # Nor when the launcher or the machine begins again.
    assert decide(note, packaged(), LIMITS) == (note, [Start(PACKAGE)])
    # Others try the release once more: it is not meant.
    again = replace(WISH, attempt=1)
    told, steps = decide(note, up(PACKAGE, **there, wish=again), LIMITS)
    assert (told, steps) == (replace(note, attempt=1), [])
    # Another one is taken, also one that leads back.
    back = WantedRelease("0.2.0", "c" * 64)
    asked, steps = decide(note, up(PACKAGE, **there, wish=back), LIMITS)
    assert (asked.state, steps) == (LaunchState.INSTALLING, [Install(back)])
    done = InstallResult(back)
    tried, _ = decide(asked, up(PACKAGE, **there, wish=back, installed=done), LIMITS)
    assert (tried.running, tried.state) == ("0.2.0", LaunchState.STARTING)
    # And the package, which was there before, does not take that back.
    there["startable"] |= {"0.2.0"}
    assert decide(tried, up("0.2.0", **there, wish=back), LIMITS)[0].running == "0.2.0"


def test_a_package_that_is_no_newer_than_what_runs_changes_nothing():
    for version in ("0.2.0", NEW):
        assert decide(CHOSEN, packaged(version), LIMITS) == (CHOSEN, [Start(NEW)])


def test_a_newer_package_that_is_older_than_what_is_chosen_runs_until_that_does():
    wish = WantedRelease("0.5.0", "d" * 64)
    back = replace(CHOSEN, state=LaunchState.ROLLED_BACK, why="0.5.0 ended", manifest=wish.manifest)
    note, steps = decide(back, packaged(wish=wish), LIMITS)
    assert (note.running, note.why, steps) == (PACKAGE, "0.5.0 ended", [Start(PACKAGE)])
    assert note.state is LaunchState.ROLLED_BACK
    trial = replace(TRIED, manifest=wish.manifest)
    note, steps = decide(trial, packaged(wish=wish), LIMITS)
    assert (note.running, note.state) == (PACKAGE, LaunchState.INSTALLING)
    assert steps == [Install(wish), Start(PACKAGE)]


def test_a_package_of_what_is_chosen_is_what_is_chosen():
    refused = LaunchNote(OLD, state=LaunchState.REFUSED, why="disk", manifest=WISH.manifest)
    sight = seen(base=NEW, startable=frozenset({NEW}))
    note, steps = decide(refused, sight, LIMITS)
    assert (note.running, note.state) == (NEW, LaunchState.INSTALLING)
    assert steps == [Install(WISH), Start(NEW)]
    done = replace(sight, installed=InstallResult(WISH), child=NEW)
    assert decide(note, done, LIMITS)[0].state is LaunchState.HEALTHY


def test_once_the_older_package_is_back_the_chosen_release_is_installed_again():
    stays, _ = decide(CHOSEN, packaged(), LIMITS)
    sight = seen(base=OLD, startable=frozenset({OLD, NEW}))
    note, steps = decide(stays, sight, LIMITS)
    assert (note.running, note.state) == (NEW, LaunchState.INSTALLING)
    assert steps == [Install(WISH), Start(NEW)]


def test_a_node_that_ends_by_itself_is_started_again_after_a_while():
    settled = seen(wish=None, ended="code 1", again_at=1005.0)
    assert decide(RUNNING, settled, LIMITS) == (RUNNING, [])
    assert decide(RUNNING, replace(settled, now=1005.0), LIMITS)[1] == [Start(OLD)]


@dataclass
class World:
    """A disk, a launcher on it that may end at any moment, and releases that behave as they do."""

    dice: random.Random
    behaves: str
    note: LaunchNote = RUNNING
    now: float = 1000.0
    installed: set[str] = field(default_factory=lambda: {OLD})
    child: str = ""
    since: float = 0.0
    first_ready: float | None = None
    ended: str = ""
    result: InstallResult | None = None
    installing: WantedRelease | None = None
    install_again_at: float = inf
    is_ready: bool = False
    unready_since: float = 0.0
    # From when on the parent is away, and until when.
    away: tuple[float, float] = (inf, inf)
    ran: list[str] = field(default_factory=list)

    def power_cut(self):
        self.child, self.ended, self.first_ready = "", "", None
        self.result = self.installing = None
        self.install_again_at = self.now + 10

    def live(self):
        """What goes on without the launcher."""
        self.now += self.dice.choice((1, 5, 20))
        age = self.now - self.since
        if self.child == NEW and (
            self.behaves == "ends" or (self.behaves == "dies" and self.first_ready and age > 40)
        ):
            self.child, self.ended = "", "code 3"
        joins = self.child == OLD or (self.child == NEW and self.behaves != "apart")
        was_ready = self.is_ready
        is_there = not self.away[0] <= self.now < self.away[1]
        self.is_ready = bool(self.child) and joins and is_there and age > 3
        if self.is_ready and self.first_ready is None:
            self.first_ready = self.now
        if was_ready and not self.is_ready:
            self.unready_since = self.now
        if self.installing and self.dice.random() < 0.5:
            is_full = self.dice.random() < 0.3
            self.result = InstallResult(self.installing, "full" if is_full else "", is_full)
            self.install_again_at = self.now + 10 if is_full else inf
            self.installing = None
            if not is_full:
                self.installed.add(NEW)

    def look(self):
        sight = Seen(
            now=self.now,
            startable=frozenset(self.installed),
            base=OLD,
            wish=WISH,
            child=self.child,
            child_since=self.since,
            ended=self.ended if self.note.running == NEW else "",
            first_ready=self.first_ready,
            is_ready=self.is_ready,
            unready_since=self.unready_since,
            installing=self.installing,
            installed=self.result,
            install_again_at=self.install_again_at,
        )
        note, steps = decide(self.note, sight, LIMITS)
        is_cut = self.away[0] == inf and self.dice.random() < 0.1
        cut = self.dice.randrange(len(steps) + 2) if is_cut else None
        if cut == 0:
            return self.power_cut()
        self.note = note
        for number, step in enumerate(steps, start=1):
            if cut == number:
                return self.power_cut()
            match step:
                case Install(wanted):
                    self.installing, self.result, self.install_again_at = wanted, None, inf
                case Stop():
                    self.child, self.ended = "", ""
                case Start(version):
                    assert version in self.installed
                    self.child, self.since, self.first_ready, self.ended = (
                        version,
                        self.now,
                        None,
                        "",
                    )
                    self.is_ready, self.unready_since = False, self.now
                    self.ran.append(version)
                case Tidy(keep):
                    assert OLD in keep
                    assert self.child in {"", *keep}, "its files are needed until it ended"
                    self.installed &= keep
        return None


@pytest.mark.parametrize("behaves", ["good", "ends", "apart", "dies"])
def test_wherever_the_power_is_cut_one_of_the_two_runs_in_the_end(behaves):
    ends = {"good": NEW, "ends": OLD, "apart": OLD, "dies": OLD}
    for seed in range(150):
        world = World(random.Random(f"{behaves} {seed}"), behaves)
        for _ in range(400):
            world.live()
            world.look()
            assert {world.note.running, world.note.former} <= {OLD, NEW, ""}
            if world.note.state in (LaunchState.HEALTHY, LaunchState.ROLLED_BACK) and world.child:
                break
        assert world.child == world.note.running, seed
        assert world.note.state in (LaunchState.HEALTHY, LaunchState.ROLLED_BACK), seed
        # A good one may be given up after as many power cuts as it has starts.
        if world.note.running != ends[behaves]:
            assert "was started 3 times" in world.note.why, seed
        assert world.ran.count(NEW) <= LIMITS.starts_max, seed


@pytest.mark.parametrize("behaves", ["good", "ends"])
def test_a_parent_that_is_away_makes_no_release_fail_and_one_that_ends_does(behaves):
    for seed in range(75):
        world = World(random.Random(f"away {behaves} {seed}"), behaves)
        begins = world.now + world.dice.randrange(150)
        world.away = begins, begins + 1000
        for _ in range(800):
            world.live()
            world.look()
            if world.note.state in (LaunchState.HEALTHY, LaunchState.ROLLED_BACK) and world.child:
                break
        good = (NEW, LaunchState.HEALTHY)
        wanted = good if behaves == "good" else (OLD, LaunchState.ROLLED_BACK)
        assert (world.note.running, world.note.state) == wanted, (seed, world.note)
        assert world.ran.count(NEW) <= 4, seed
