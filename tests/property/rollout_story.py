"""A rollout lives through anything: contents, faults, restarts, commands. Its laws are looked at.

What happens is a list of small actions, so that a life can be told again, and shortened. A mutant
tampers with what the decision is told, or with what becomes of it.
"""

from dataclasses import dataclass, replace

from controllers.core.rollout import layers
from controllers.core.rollout.decision import Run, begin_run, decide
from controllers.core.rollout.rejection import Wanted, rejection_of, still_rejected
from controllers.core.rollout.state import is_under_way
from relay.core.instant import Instant
from schemas.records.records import BUCKETS
from tests.unit.rollout_world import Fleet, content, rollout

SIZE, CANARIES, SOAK = 40, 5, 20
WAVES = (
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "soak": f"{SOAK}s"},
    {"name": "some", "percent": 30, "maxConcurrent": "50%", "soak": f"{SOAK}s"},
    {"name": "more", "percent": 60, "approval": "before", "soak": f"{SOAK}s"},
    {"name": "rest", "percent": 100, "soak": f"{SOAK}s"},
)
MAXIMUM, MINIMUM = 0.25, 0.75
ACTIONS = (
    "want",
    "pass",
    "pass",
    "pass",
    "approve",
    "approve",
    "crash",
    "lose status",
    "lose ledger",
    "lose both",
    "inexact",
    "exact",
    "exact",
    "fail",
    "away",
    "heal",
    "heal",
    "lag",
    "stumble",
    "pause",
    "resume",
    "resume",
    "promote",
    "abort",
    "undo",
    "other",
    "retry",
    "pin",
    "freeze",
)


class LawBroken(AssertionError):
    """A law that does not hold."""


class Mutant:
    """No mutant: what all of them change some of."""

    def facts(self, _story, facts):
        return facts

    def run(self, _story, _before, run):
        return run

    def restarted(self, _story, run):
        return run

    def state(self, _story, _before, state):
        return state

    def gates(self, _story, gates):
        return gates


@dataclass
class Seen:
    """What the story knows of the present wave by itself."""

    of: tuple[int, int, int]
    good: float = 0.0


class Story(Fleet):
    """A fleet of which the laws are looked at after each action."""

    def __init__(self, mutant=None):
        spec = rollout(
            WAVES,
            success={"minimum": f"{int(MINIMUM * 100)}%"},
            failures={"maximum": f"{int(MAXIMUM * 100)}%"},
            offline={"maximum": "50%"},
        )
        self.last = 0.0
        # What the space wants of two objects; by address, of which each content is made.
        self.wish = {"a": 0, "b": 0}
        self.parts = {}
        super().__init__(spec, SIZE, CANARIES, self.made(self.wish))
        self.rejection = None
        # What was aborted or undone, and is wanted still.
        self.taken_back = {}
        self.mutant = mutant or Mutant()
        self.lagging = set()
        self.may_go_back = False
        self.freezing = {}
        self.pinned = {}
        self.seen = Seen((0, 0, 0))
        self.was_good = False
        self.has = {}
        self.turn()
        self.has = {each: self.arm(each) for each in self.labels}

    # Actions.

    def act(self, action, number):
        """One of ACTIONS, with a number that says which or how much."""
        self.may_go_back = self.is_told = False
        getattr(self, f"_{action.replace(' ', '_')}")(number)
        self.look()

    def made(self, parts):
        """The content of these objects."""
        found = content(f"a{parts['a']} b{parts['b']}")
        self.parts[found.address] = dict(parts)
        return found

    def write(self, name):
        self.wish[name] += 1
        self.taken_back.pop(name, None)
        self.want(self.made(self.wish))

    def _want(self, _number):
        self.write("a")

    def _other(self, _number):
        self.write("b")

    def _retry(self, _number):
        self.may_go_back = True
        self.tell("retry")

    def take_back(self, before):
        """What the space wants of what was given up just now; what waits for room was not out."""
        former = self.parts.get(self.state.target, {})
        wish = {} if before.waiting_for else self.wish
        self.taken_back = {name: wish[name] for name in wish if wish[name] != former.get(name)}

    def _pass(self, number):
        self.turn(1 + number % 15)

    def _approve(self, _number):
        self.tell("approve")

    def _crash(self, number):
        # Between what is written down and what is let out, or after.
        if number % 2:
            self.decide()
        self.restart()
        self.seconds = 5.0
        self.run = begin_run(self.state, Instant(self.seconds, self.wall_ms))
        self.run = self.mutant.restarted(self, self.run)
        self.was_good = False
        wave, revision = self.state.wave, self.state.revision
        self.turn()
        if self.state.revision == revision and self.state.wave < wave:
            raise LawBroken("a restart went back a wave")

    def _lose_status(self, _number):
        self.forget(status=False)

    def _lose_ledger(self, _number):
        self.forget(ledger=False)

    def _lose_both(self, _number):
        self.facts = {"is_lost": True}
        self.forget(status=False, ledger=False)
        if self.gates is not None:
            raise LawBroken("something opened though nobody knows how far it was")
        self.tell("resume")
        self.facts = {}
        self.taken_back = {}
        self.freezing, self.pinned = {}, {}
        self.may_go_back = True

    def forget(self, *, status=True, ledger=True):
        self.restart(status=status, ledger=ledger)
        self.was_good = False
        self.turn()

    def _inexact(self, _number):
        self.exact = False
        self.turn()

    def _exact(self, _number):
        self.exact = True
        self.turn()

    def _fail(self, number):
        self.afflict(self.health, "degraded", number)

    def _away(self, number):
        self.afflict(self.states, "unreachable", number)

    def _lag(self, number):
        self.afflict(self.states, "pending", number)

    def _stumble(self, number):
        self._lag(number)
        self.turn(1)
        self._heal(number)

    def _heal(self, _number):
        self.states.clear()
        self.health.clear()
        self.turn()

    def afflict(self, of, what, number):
        """So it is with some of those whom the present wave admitted, or with a few of all."""
        listed = sorted(each for each in self.labels if self.admission(each).wave)
        if number % 3 and self.state.wave:
            name = f"{self.state.revision}.{self.state.wave - 1}"
            listed = sorted(each for each in self.labels if self.admission(each).wave == name)
        for each in (listed or sorted(self.labels))[:: 1 + number % 4]:
            of[each] = what
        self.turn()

    def _pause(self, _number):
        self.tell("pause")

    def _resume(self, _number):
        self.tell("resume")

    def _promote(self, _number):
        self.tell("promote")

    def _abort(self, _number):
        self.may_go_back = True
        if self.tell("abort").outcome == "Done" and self.state.layers[0].revision in (
            item.number for item in self.state.history if item.outcome == "Aborted"
        ):
            raise LawBroken("what is given up is still out")

    def _undo(self, number):
        self.may_go_back = True
        self.tell("undo", revision=number % (self.state.revision + 1), now=number % 3 == 0)

    def wanted(self):
        """What is to go out of the two objects."""
        over = rejection_of(self.state) if self.state is not None else None
        if over is None:
            return Wanted(self.target)
        wish, former = self.parts[self.target.address], self.parts.get(over.target.address, {})
        left = still_rejected(wish, self.parts[over.wish.address], former, lambda _: frozenset())
        if not left:
            return Wanted(self.target, over=over)
        kept = {name: former[name] for name in left}
        return Wanted(self.made({**wish, **kept}), self.target, (), over)

    def known(self):
        return replace(super().known(), rejection=self.rejection)

    def _pin(self, number):
        place = f"/emea/s{1 + 2 * (number % 20)}"
        revision = 1 + number % max(self.state.revision, 1)
        self.may_go_back = True
        if self.tell("pin", path=place, revision=revision).outcome == "Done":
            kept = next(item for item in self.state.history if item.number == revision)
            self.pinned[place] = kept.manifest

    def _freeze(self, number):
        place = ("/emea", "/apac")[number % 2]
        before = {each: self.arm(each) for each in self.labels} if self.gates else {}
        action = "unfreeze" if place in self.freezing else "freeze"
        done = self.tell(action, path=place).outcome == "Done"
        if done and action == "freeze":
            self.freezing[place] = before
        elif done:
            del self.freezing[place]
            # Who was frozen catches up, also with what was given up meanwhile.
            self.may_go_back = True

    def tell(self, action, **fields):
        self.is_told = True
        return self.ask(action, **fields)

    # The decision, as a mutant has it.

    def decide(self):
        now = Instant(self.seconds, self.wall_ms)
        if self.run is None:
            self.run = begin_run(self.state, now)
        before, truth = self.state, self.known()
        self.watch(before, truth, now)
        facts = self.mutant.facts(self, truth)
        run = self.mutant.run(self, before, self.run)
        decision = decide(self.spec, facts, before, run, now)
        state = self.mutant.state(self, before, decision.state)
        self.judge_opening(before, state, truth)
        self.judge_taken_back(before, state)
        self.state, self.run, self.wake = state, decision.run, decision.wake
        self.rejection = rejection_of(state)
        if before is not None and state.request != before.request:
            asked = state.request
            if asked.action in ("abort", "undo") and asked.outcome == "Done":
                self.take_back(before)
            elif asked.action == "retry" and asked.outcome == "Done":
                self.taken_back = {}

    def issue(self):
        gates = self.mutant.gates(self, layers.gates_of(self.state))
        if gates and gates != self.gates:
            self.gates = gates
            self.deltas.append(gates)

    # Laws.

    def wave_good(self, state, facts):
        """Whether exact counts of what is open now say that the present wave is good; failures."""
        if facts.count is None or not facts.count.exact or facts.gates != layers.gates_of(state):
            return None, False
        name = f"{state.revision}.{state.wave - 1}"
        counted = {"all": 0, "good": 0, "bad": 0, "away": 0}
        for text, many in facts.count.summary.cells.items():
            gate, is_state, health = text.split("/")
            if gate != name:
                continue
            counted["all"] += many
            counted["away"] += many * (is_state == "unreachable")
            counted["good"] += many * (is_state == "synced" and health == "healthy")
            counted["bad"] += many * (is_state == "synced" and health == "degraded")
        if counted["all"] == 0:
            return True, False
        heard = counted["all"] - counted["away"]
        failed = counted["bad"] > MAXIMUM * counted["all"]
        good = heard > 0 and counted["good"] >= MINIMUM * heard
        return good and counted["away"] <= counted["all"] / 2 and not failed, failed

    def watch(self, state, facts, now):
        """Count for how long the present wave was seen to be good, up to this decision."""
        if state is None or not is_under_way(state):
            self.was_good = False
            return
        wave = state.waves[state.wave - 1]
        of = (state.revision, state.wave, wave.step)
        if of != self.seen.of:
            self.seen = Seen(of)
            self.was_good = False
        if self.was_good:
            self.seen.good += now.seconds - self.last
        self.last = now.seconds
        good, _ = self.wave_good(state, facts)
        whole = wave.step == len(wave.steps) > 0
        if good is False:
            self.seen.good = 0.0
        self.was_good = bool(good) and whole and not state.paused and wave.phase != "Failed"

    def judge_opening(self, before, state, facts):
        """What opens by itself opens after exact counts were good, and the last step soaked."""
        if before is None or not is_under_way(before) or state.revision != before.revision:
            if before is not None and state.revision > max(before.revision, 0):
                self.demand_first_wave(before, state)
            return
        opened = sum(wave.step for wave in state.waves) - sum(wave.step for wave in before.waves)
        asked = state.request != before.request and state.request.action in ("promote", "approve")
        passed = state.wave > before.wave
        if (opened <= 0 and not passed) or state.wave == 0 or asked:
            return
        wave = before.waves[before.wave - 1]
        if wave.step == 0:
            return
        good, failed = self.wave_good(before, facts)
        if failed:
            raise LawBroken("something opened over the maximum of failures")
        if not good:
            raise LawBroken("something opened without exact and good counts")
        ended = wave.step == len(wave.steps)
        nobody = not self.members(before, facts)
        if ended and not nobody and self.seen.good < SOAK - 1:
            raise LawBroken(f"it soaked {self.seen.good} s only")

    def judge_taken_back(self, before, state):
        """What was aborted or undone begins by nobody's other change, and by no restart."""
        asked = before is not None and state.request != before.request
        if before is None or asked or state.revision <= before.revision:
            return
        begun = self.parts[state.layers[0].manifest]
        again = [name for name, said in self.taken_back.items() if begun[name] == said]
        if again and before.phase != "Held":
            raise LawBroken(f"what was taken back of {again} goes out again")

    def members(self, state, facts):
        name = f"{state.revision}.{state.wave - 1}/"
        return sum(n for cell, n in facts.count.summary.cells.items() if cell.startswith(name))

    def demand_first_wave(self, before, state):
        if is_under_way(state) and before.phase != "Held":
            beyond = [wave.name for wave in state.waves[1:] if wave.step]
            asked = state.request != before.request
            if beyond and not asked:
                raise LawBroken(f"a new revision jumped ahead to {beyond}")

    def look(self):
        """What holds at rest."""
        assert self.gates is not None
        if not self.gates[-1].admits_all:
            raise LawBroken("some are admitted by no gate")
        arms = {gate.arm for gate in self.gates}
        plain = {gate.arm for gate in self.gates if gate.path.is_root}
        if len(plain) > layers.CONTENTS_MAX:
            raise LawBroken("too many contents at once")
        known = {item.manifest for item in self.state.history}
        known |= {layer.manifest for it in self.state.freezes for layer in it.layers}
        if not {arm.address for arm in arms if arm is not None} <= known:
            raise LawBroken("a content that no revision has")
        self.look_at_places()
        self.look_back()
        if is_under_way(self.state) and not self.state.waiting_for:
            wave = self.state.waves[self.state.wave - 1]
            if any(each.step for each in self.state.waves[self.state.wave :]):
                raise LawBroken(f"something is open beyond wave {wave.name}")

    def look_at_places(self):
        for each, path in self.paths.items():
            pinned = self.pinned.get(str(path))
            if pinned is not None:
                if self.arm(each).address != pinned:
                    raise LawBroken(f"{path} has not what it is pinned to")
                continue
            frozen = self.freezing.get(f"/{path.names[0]}")
            if frozen is not None and self.arm(each) != frozen[each]:
                raise LawBroken(f"{path} is frozen and got something else")

    def look_back(self):
        """Without abort, undo and the like nobody goes back."""
        numbers = {}
        for item in self.state.history:
            numbers.setdefault(item.manifest, []).append(item.number)
        now = {each: self.arm(each) for each in self.labels}
        if not self.may_go_back:
            for each, arm in now.items():
                before = self.has.get(each)
                if before is None or before == arm or before.address not in numbers:
                    continue
                if max(numbers[arm.address]) < min(numbers[before.address]):
                    raise LawBroken("someone went back")
        self.has = now


def live(actions, mutant=None):
    """A life of these actions: pairs of a name and a number; raises LawBroken."""
    story = Story(mutant)
    for action, number in actions:
        story.act(action, number)
    return story


__all__ = ["ACTIONS", "BUCKETS", "LawBroken", "Mutant", "Run", "Story", "live", "replace"]
