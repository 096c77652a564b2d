"""The laws of rollouts, over random lives; and each planted defect is found by one of them."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records.records import BUCKETS
from schemas.reports.reports import Summary
from tests.property.examples import examples
from tests.property.rollout_story import ACTIONS, LawBroken, Mutant, live

LIVES = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99)), max_size=40)
SEEDS = 200


@settings(max_examples=examples(150), deadline=None)
@given(LIVES)
def test_the_laws_hold_whatever_happens(actions):
    live(actions)


def life(seed):
    """A life in which only some things happen, those often: faults that need each other meet."""
    dice = random.Random(seed)
    some = [*dice.sample(sorted(set(ACTIONS)), dice.randrange(1, 8)), "pass", "pass", "heal"]
    number = dice.randrange(10, 30)
    return [("want", 0), *((dice.choice(some), dice.randrange(100)) for _ in range(number))]


def recounted(facts, changed):
    """The facts with other cells."""
    if facts.count is None:
        return facts
    cells = {}
    for text, many in facts.count.summary.cells.items():
        key = changed(text)
        cells[key] = cells.get(key, 0) + many
    return replace(facts, count=replace(facts.count, summary=Summary(cells=cells)))


class UnreachableIsSuccess(Mutant):
    def facts(self, _story, facts):
        return recounted(
            facts, lambda t: t.split("/")[0] + "/synced/healthy" if "unreachable" in t else t
        )


class FailuresUnseen(Mutant):
    def facts(self, _story, facts):
        return recounted(facts, lambda text: text.replace("degraded", "healthy"))


class InexactJudged(Mutant):
    def facts(self, _story, facts):
        if facts.count is None:
            return facts
        return replace(facts, count=replace(facts.count, exact=True))


class FormerStepJudged(Mutant):
    last = None

    def facts(self, _story, facts):
        former, self.last = self.last, facts.count
        return replace(facts, count=former) if former is not None else facts


class AnotherWaveJudged(Mutant):
    def facts(self, story, facts):
        if story.state is None:
            return facts
        first = f"{story.state.revision}.0/"
        name = f"{story.state.revision}.{story.state.wave - 1}/"
        swap = {first: name, name: first}
        return recounted(
            facts,
            lambda text: next(
                (text.replace(one, other) for one, other in swap.items() if text.startswith(one)),
                text,
            ),
        )


class SoakNotBegunAnew(Mutant):
    most = 0.0, (0, 0)

    def run(self, _story, _before, run):
        most, of = self.most
        soaked = max(most, run.soaked) if of == run.wave else run.soaked
        self.most = soaked, run.wave
        return replace(run, soaked=soaked)


class SoakCountsDowntime(Mutant):
    def restarted(self, _story, run):
        return replace(run, soaked=run.soaked + 10)


class SoakIgnored(Mutant):
    def run(self, _story, _before, run):
        return replace(run, soaked=1e9)


class AllOpenedOnLedgerLoss(Mutant):
    def facts(self, _story, facts):
        return replace(facts, is_lost=False)


class LabelGateLeftOpen(Mutant):
    def gates(self, story, gates):
        former = story.deltas[-1] if story.deltas else ()
        if story.state.phase != "Aborted":
            return gates
        left = [gate for gate in former if gate.selector is not None and gate not in gates]
        return (*left, *gates)


class SaltOfEachWave(Mutant):
    def gates(self, _story, gates):
        return tuple(_salted(gate) for gate in gates)


def _salted(gate):
    fields = {name: getattr(gate, name) for name in gate.__struct_fields__}
    salt = gate.name if 0 < gate.below < BUCKETS else gate.salt
    return type(gate)(**{**fields, "salt": salt})


class SupersedeJumpsAhead(Mutant):
    def state(self, _story, before, state):
        if before is None or state.revision == before.revision or len(state.waves) < 4:
            return state
        waves = tuple(w.model_copy(update={"step": 1}) if w.steps == () else w for w in state.waves)
        return state.model_copy(update={"waves": waves})


class PlacesForgotten(Mutant):
    def gates(self, _story, gates):
        return tuple(gate for gate in gates if gate.path.is_root)


class HistoryForgotten(Mutant):
    def state(self, _story, _before, state):
        return state.model_copy(update={"history": state.history[-1:]})


class RestartGoesBack(Mutant):
    def restarted(self, story, run):
        if story.state.wave > 1:
            story.state = story.state.model_copy(update={"wave": 1, "layers": story.state.layers})
        return run


class TakenBackForgotten(Mutant):
    """What was aborted or undone is no more than what happened to go out last."""

    def state(self, _story, _before, state):
        return state.model_copy(update={"wish": "", "wish_size": 0, "rejected": None})


class FirstGateForgotten(Mutant):
    """A step that closes what was open before it."""

    def gates(self, _story, gates):
        named = [gate for gate in gates if gate.name]
        return tuple(gate for gate in gates if not gate.name or gate is named[-1])


MUTANTS = [each for each in Mutant.__subclasses__() if each.__module__ == __name__]


def test_no_life_breaks_a_law():
    for seed in range(examples(SEEDS)):
        live(life(seed))


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_each_planted_defect_is_found(mutant):
    for seed in range(SEEDS):
        try:
            live(life(seed), mutant())
        except (LawBroken, StopIteration, KeyError):
            return
    pytest.fail(f"{mutant.__name__} lives")
