"""A delta of several contents: what is written, what someone may lose, what a start reads back."""

from dataclasses import replace

from controllers.core.access.keyring import IN_CLEAR, Keyring
from controllers.core.translation.clean_objects import CleanObjects
from controllers.core.translation.reading import read_arm, read_issued, target_of
from controllers.core.translation.translate import DeltaRules, Steering, translate
from schemas.content import blobs
from schemas.records.records import Gate
from schemas.reports.collectors import Expression, Program
from schemas.values.identity import Generation
from tests.unit.test_translate import HEAD, config, issued, objects, say

OLD, NEW = objects(config("a"), config("b")), objects(config("a", "2", value="2"), config("b"))
FEWER = objects(config("a", "3", value="3"))


class Store:
    """The blob store of a centre, and a placement in its ledger."""

    def __init__(self):
        self.values, self.before, self.generation = {}, None, 6

    def say(self, items, gates_of=None, **rules):
        steering = Steering(gates_of) if gates_of is not None else None
        rules = DeltaRules(steering=steering, **rules)
        said = translate(
            HEAD, dict.fromkeys(items, 0), items, CleanObjects(), self.before, rules=rules
        )
        if said.draft is not None:
            self.generation += 1
            self.values |= said.draft.blobs
            self.before = said.issued(said.draft.stamped(Generation(self.generation)))
            self.body = said.draft.body.value
        return said

    def read(self, reading):
        asked = None
        while True:
            try:
                wanted = reading.send(asked)
            except StopIteration as end:
                return end.value
            asked = {
                r.address: blobs.open_value(r, self.values[r.address])
                for r in wanted
                if r.address in self.values
            }


def layers(old, below=100):
    """The target to some, and the old content to the rest."""
    return lambda target: (Gate(target, below=below, name="2.0"), Gate(old, name="1.0"))


def started():
    store = Store()
    store.say(OLD)
    return store, store.before.gates[0].arm


def test_a_step_of_a_rollout_writes_no_content_anew():
    store, old = started()
    first = store.say(NEW, layers(old))
    assert len(first.draft.blobs) == 3  # object, chunk, root
    widened = store.say(NEW, layers(old, 5000))
    assert widened.draft.blobs == {}
    content = store.body.content
    assert content == tuple(gate.arm for gate in store.before.gates)
    assert store.say(NEW, layers(old, 5000)).draft is None


def test_a_rollout_is_steady_from_the_delta_before_it_on():
    store, old = started()
    assert store.before.head.rollout_since == 0
    store.say(NEW, layers(old))
    store.say(NEW, layers(old, 5000))
    assert (store.before.head.generation, store.before.head.rollout_since) == (9, 7)
    store.say(NEW)
    assert store.before.head.rollout_since == 0
    fresh = Store()
    fresh.say(NEW, lambda target: (Gate(target, name="1.0"),))
    assert fresh.before.head.rollout_since == 1


def test_a_step_loses_if_any_content_lacks_what_another_has():
    store, old = started()
    assert not store.say(NEW, layers(old)).draft.loses
    assert store.say(FEWER, layers(old)).draft.loses
    # Whoever is admitted by the next step loses, too.
    assert store.say(FEWER, layers(old, 5000)).draft.loses
    assert store.before.head.last_loss == store.generation


def test_an_abort_loses_what_only_the_new_content_had():
    store, old = started()
    store.say(objects(config("a"), config("b"), config("c")), layers(old))
    more = objects(config("a"), config("b"), config("c"))
    aborted = store.say(more, lambda _target: (Gate(old, name="1.0"),))
    assert aborted.draft.loses
    assert not aborted.aimed
    assert store.say(more, lambda _target: (Gate(old, name="1.0"),)).draft is None


def test_a_content_that_nobody_gets_yet_is_stored_all_the_same():
    store, old = started()
    waits = store.say(NEW, lambda _target: (Gate(old, name="1.0"),))
    assert len(waits.draft.blobs) == 3
    assert store.say(NEW, layers(old)).draft.blobs == {}


def test_a_start_reads_all_contents_back():
    store, old = started()
    store.say(FEWER, layers(old))
    read = store.read(read_issued(store.before.head, store.body, IN_CLEAR))
    assert (read.entries, read.others) == (store.before.entries, store.before.others)
    assert read.kept == store.before.kept
    assert read.knows_all
    store.before = read
    assert store.say(FEWER, layers(old)).draft is None


def test_a_content_that_is_lost_may_have_held_more():
    store, old = started()
    store.say(NEW, layers(old))
    del store.values[old.address]
    store.before = store.read(read_issued(store.before.head, store.body, IN_CLEAR))
    assert not store.before.knows_all
    assert store.read(read_arm(old, IN_CLEAR)) is None
    assert store.say(NEW, layers(old, 5000)).draft.loses


def test_the_target_is_the_content_of_the_newest_revision():
    _, old = started()
    new = replace_reference(old)
    pin = Gate(old)
    assert target_of((pin, Gate(new, name="10.0"), Gate(old, name="9.1"))) == new
    assert target_of((Gate(new, below=5), Gate(old))) == old


def replace_reference(reference):
    return blobs.Reference(reference.kind, "f" * 64, reference.size)


def test_without_a_rollout_all_is_as_it_was():
    said = say(OLD)
    again = say(OLD, issued(said))
    assert (again.draft, said.gates[0].admits_all) == (None, True)
    unread = replace(issued(said), entries=None)
    assert not unread.knows_all


def test_what_collectors_look_at_in_a_content_that_nobody_gets_is_no_news():
    looks = Program("p", select=(Expression("fixed", "obj.immutable"),))
    other = Program("p", select=(Expression("value", "obj.metadata.name"),))
    said = {
        "keys": Keyring("tree", (b"m" * 32,)).keys(HEAD.source.key),
        "collectors": dict.fromkeys(OLD, (looks,)),
    }
    fixed = objects(config("a", "2", immutable=True), config("b"))
    store = Store()
    store.say(OLD, **said)
    old = store.before.gates[0].arm
    held = (Gate(old, name="1.0"),)
    store.say(OLD, lambda _target: held, **said)
    shown = store.before.collectors
    assert store.say(fixed, lambda _target: held, **said).draft is None
    # Once someone gets it, it counts; and so does another question.
    assert store.say(fixed, layers(old), **said).draft is not None
    assert store.before.collectors != shown
    said["collectors"] = dict.fromkeys(OLD, (other,))
    assert store.say(OLD, lambda _target: (Gate(old),), **said).draft is not None
