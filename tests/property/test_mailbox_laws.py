"""Laws of the children's mailboxes: the digest equals the fold, and what takes waits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.effects import ClearMail, WriteMail, still_meant
from relay.core.turns import Send, Supply, next_batch
from schemas.identity import INDEX_KEY, short_key
from tests.property.mailbox import KEYS, Bench, held


def test_a_record_is_written_once():
    bench = Bench()
    assert bench.put(held(KEYS[0], 5)) == [KEYS[0]]
    bench.confirm_all()
    assert bench.put(held(KEYS[0], 5)) == []
    assert bench.put(held(KEYS[0], 6)) == [KEYS[0]]


def test_of_one_key_only_one_write_is_on_its_way():
    bench = Bench()
    bench.put(held(KEYS[0], 5))
    assert bench.put(held(KEYS[0], 6)) == []
    assert bench.confirm() == [KEYS[0]]


def test_a_delta_that_waits_for_blobs_lets_others_pass():
    bench = Bench()
    assert bench.put(held(KEYS[0], 5), supply=Supply.COMING) == []
    assert bench.put(held(KEYS[1], 6)) == [KEYS[1]]
    bench.supply[KEYS[0]] = Supply.HERE
    assert bench.flush() == [KEYS[0]]


TAKERS = {
    "deleted": (lambda: held(KEYS[1], 6, deleted=True), Send.BARE),
    "bare": (lambda: held(KEYS[1], 6), Send.BARE),
    "loss": (lambda: held(KEYS[1], 6, last_loss=6), Send.WHOLE),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_from_the_child_waits_for_all_earlier_ones(taker):
    bench = Bench()
    bench.settled(held(KEYS[1], 4))
    bench.put(held(KEYS[0], 5), supply=Supply.COMING)
    record, wish = TAKERS[taker]
    assert bench.put(record(), wish) == []
    assert bench.put(held(KEYS[2], 7)) == [KEYS[2]]
    bench.supply[KEYS[0]] = Supply.HERE
    assert bench.flush() == [KEYS[0], KEYS[1]]


@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_does_not_wait_for_content_that_was_refused(taker):
    bench = Bench()
    bench.settled(held(KEYS[1], 4))
    bench.put(held(KEYS[0], 5), supply=Supply.REFUSED)
    record, wish = TAKERS[taker]
    assert bench.put(record(), wish) == [KEYS[1]]


@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_does_not_wait_for_later_ones(taker):
    bench = Bench()
    bench.settled(held(KEYS[1], 4))
    record, wish = TAKERS[taker]
    assert bench.put(record(), wish) == [KEYS[1]]
    assert bench.put(held(KEYS[0], 5), supply=Supply.COMING) == []


def test_a_loss_that_the_child_knows_already_does_not_wait():
    bench = Bench()
    bench.settled(held(KEYS[1], 4, last_loss=4))
    bench.put(held(KEYS[0], 5), supply=Supply.COMING)
    assert bench.put(held(KEYS[1], 6, last_loss=4)) == [KEYS[1]]


def test_what_never_was_sent_is_not_sent_bare():
    bench = Bench()
    assert bench.put(held(KEYS[0], 5), Send.NOTHING) == []
    assert not bench.box.queue


def test_nothing_is_cleared_that_was_written_to_since():
    bench = Bench()
    bench.settled(held(KEYS[0], 5))
    bench.put(held(KEYS[0], 6), Send.BARE)
    bench.boxes.clear("a", KEYS[0])
    assert bench.out == []
    bench.confirm_all()
    bench.boxes.clear("a", KEYS[0])
    assert [type(effect) for effect in bench.out] == [ClearMail]


def test_a_record_bears_on_the_placements_that_the_child_holds():
    bench = Bench()
    bench.settled(held(KEYS[0], 5))
    assert bench.box.slots[KEYS[0]].bearing == 1
    bench.put(held(KEYS[1], 6, kind="profile"), bears=(KEYS[0], KEYS[2]))
    assert bench.boxes.pending("a", KEYS[0])
    bench.confirm_all()
    assert not bench.boxes.pending("a", KEYS[0])
    assert bench.box.slots[KEYS[0]].bearing == 2


steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "confirm", "clear", "forget", "here", "again"]),
        st.sampled_from(KEYS),
        st.booleans(),
        st.sampled_from([Send.WHOLE, Send.BARE]),
        st.sampled_from(list(Supply)),
        st.sampled_from(["delta", "profile", "index"]),
    ),
    max_size=30,
)


@given(steps)
def test_the_digest_is_the_fold_over_the_slots_whatever_happens(changes):
    bench = Bench()
    kinds = {}
    for generation, (step, key, deleted, wish, supply, kind) in enumerate(changes, 1):
        if step == "put":
            of = kinds.setdefault(key, kind)
            record = held(key, generation, deleted=deleted, kind=of)
            bench.put(record, wish if of == "delta" else Send.WHOLE, supply)
        elif step == "confirm" and bench.flying:
            bench.confirm()
        elif step == "clear":
            bench.boxes.clear("a", key)
        elif step == "forget":
            bench.book.pop(key, None)
            bench.boxes.mark("a", key, generation)
            bench.flush()
        elif step == "here":
            bench.supply[key] = Supply.HERE
            bench.flush()
        elif step == "again":
            bench.boxes.rewrite("a")
        bench.take()
        terms = [slot.term for slot in bench.box.slots.values() if slot.content]
        assert bench.box.digest % 2**128 == sum(terms) % 2**128
        assert bench.box.digest == bench.box.digest % 2**128
    bench.confirm_all()
    assert bench.stream.keys() == bench.box.slots.keys()
    restarted = Bench()
    for slot in bench.stream.values():
        restarted.boxes.restore("a", slot)
    assert restarted.box.digest == bench.box.digest
    assert restarted.box.slots == {
        key: replace(slot, bearing=0, flying=0, generation=bench.stream[key].generation)
        for key, slot in bench.box.slots.items()
    }


def test_of_one_batch_what_gives_goes_before_what_takes():
    bench, (taker, giver, later) = Bench(), KEYS[:3]
    bench.boxes.calm = False
    assert bench.put(held(taker, 1, content=False, kind="profile")) == []
    assert bench.put(held(giver, 2)) == [giver]
    assert bench.put(held(later, 3), supply=Supply.COMING) == []
    bench.boxes.calm = True
    assert bench.flush() == []
    bench.supply[later] = Supply.HERE
    assert bench.flush() == [later, taker]


def test_what_takes_waits_for_nothing_that_came_in_a_later_batch():
    bench, (taker, later) = Bench(), KEYS[:2]
    bench.boxes.calm = False
    bench.put(held(taker, 1, content=False, kind="profile"))
    bench.order = next_batch(bench.order)
    bench.put(held(later, 2), supply=Supply.COMING)
    bench.boxes.calm = True
    assert bench.flush() == [taker]


@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_waits_for_an_earlier_one_whose_version_before_is_on_its_way(taker):
    bench = Bench()
    bench.settled(held(KEYS[1], 4))
    bench.put(held(KEYS[0], 4))
    assert bench.put(held(KEYS[0], 5)) == []
    record, wish = TAKERS[taker]
    assert bench.put(record(), wish) == []
    assert bench.confirm() == [KEYS[0], KEYS[1]]


def test_what_takes_waits_for_no_change_after_it_however_often_others_change():
    bench, (changing, other, taker) = Bench(), KEYS[:3]
    bench.settled(held(taker, 1))
    for generation in (2, 3):
        bench.put(held(changing, generation))
        bench.put(held(other, generation))
    assert bench.put(held(taker, 4, deleted=True), Send.BARE) == []
    bench.order = next_batch(bench.order)
    assert bench.confirm() == [changing]
    assert bench.put(held(changing, 5)) == []
    assert bench.confirm() == [other, taker]


@pytest.mark.parametrize("unproven", [True, False])
def test_an_index_waits_for_what_it_lists_if_the_child_may_have_been_shown_one(unproven):
    bench = Bench()
    bench.boxes.unproven = lambda _child: unproven
    bench.put(held(KEYS[0], 5), supply=Supply.COMING)
    index = held(INDEX_KEY, 6, content=False, kind="index")
    assert bench.put(index) == ([] if unproven else [INDEX_KEY])
    bench.supply[KEYS[0]] = Supply.HERE
    assert bench.flush() == ([KEYS[0], INDEX_KEY] if unproven else [KEYS[0]])


def test_a_delta_that_came_to_mean_others_waits_for_what_is_coming():
    bench, (moved, coming) = Bench(), KEYS[:2]
    bench.put(held(moved, 1))
    bench.confirm()
    bench.put(held(coming, 2), supply=Supply.COMING)
    assert bench.put(replace(held(moved, 3), regrouped=3)) == []
    bench.supply[coming] = Supply.HERE
    assert bench.flush() == [coming, moved]


def test_mail_to_a_slot_that_the_same_batch_clears_is_written_over_what_is_there():
    bench, key = Bench(), KEYS[0]
    bench.put(held(key, 1))
    bench.confirm()
    bench.boxes.clear("a", key)
    bench.book[key] = held(key, 2)
    bench.boxes.mark("a", key, 2)
    bench.boxes.flush("a")
    assert [(type(e), e.expected) for e in still_meant(bench.out)] == [(WriteMail, 1)]


class Looking(Bench):
    """A mailbox of which only what is new is looked at."""

    def flush(self):
        self.boxes.look("a")
        return self.take()


RECORDS = st.tuples(
    st.sampled_from(KEYS),
    st.booleans(),
    st.sampled_from(list(Supply)),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(RECORDS, max_size=12))
def test_a_look_at_what_is_new_writes_what_a_look_at_everything_writes(records):
    whole, partly = Bench(), Looking()
    for at, (key, loses, supply, calm, confirms) in enumerate(records):
        record = held(key, at + 1, last_loss=at + 1 if loses else 0)
        written = []
        for bench in (whole, partly):
            became_calm = calm and not bench.boxes.calm
            bench.boxes.calm = calm
            if became_calm:
                bench.boxes.flush("a")
            written.append(bench.take() + bench.put(record, supply=supply))
            written[-1] += bench.confirm_all() if confirms else []
        assert written[0] == written[1]
        assert whole.box.queue == partly.box.queue


def test_a_backlog_that_waits_for_content_is_not_looked_at_for_each_message_of_it():
    bench, looked = Looking(), []
    bench.boxes._meant = lambda _, record: looked.append(record.key) or Send.WHOLE
    keys = [short_key(at.to_bytes(20, "big")) for at in range(100)]
    for key in keys:
        assert bench.put(held(key, 1), supply=Supply.COMING) == []
    for key in keys:
        bench.supply[key] = Supply.HERE
        bench.boxes.supplied(key)
    assert bench.take() == keys
    assert len(looked) == 2 * len(keys)


def test_what_a_child_listed_is_known_as_such_until_the_stream_has_something_of_it_for_the_child():
    bench = Bench()
    bench.boxes.owe("a", KEYS[0])
    bench.put(held(KEYS[0], 1))
    assert [*bench.box.listed] == KEYS[:1]
    bench.confirm()
    assert not bench.box.listed
    assert bench.box.slots[KEYS[0]].sequence == 1


def test_what_a_child_listed_is_forgotten_with_its_slot():
    bench = Bench()
    bench.boxes.owe("a", KEYS[0])
    bench.boxes.owe("a", KEYS[1])
    bench.boxes.clear("a", KEYS[0])
    assert [*bench.box.listed] == [*bench.box.slots] == KEYS[1:2]
