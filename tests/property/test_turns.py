"""What gives and takes in one batch goes together, all or nothing, and says so."""

from dataclasses import replace

from relay.core.turns import Send, Supply, next_batch
from tests.property.mailbox import KEYS, Bench, held


def exchange(bench, supply=Supply.HERE):
    """Two that each gain and lose, of one batch, and of the second the content as told."""
    bench.settled(*(held(key, 1) for key in KEYS[:2]))
    bench.boxes.calm = False
    for key, given in ((KEYS[0], Supply.HERE), (KEYS[1], supply)):
        assert bench.put(held(key, 2, last_loss=2), supply=given) == []
    bench.boxes.calm = True
    return bench.flush()


def test_what_gives_and_takes_in_one_batch_goes_together_and_says_so():
    bench = Bench()
    assert exchange(bench) == KEYS[:2]
    assert [write.more for write in bench.flying] == [True, False]


def test_no_half_of_an_exchange_goes_while_the_content_of_the_other_is_coming():
    bench = Bench()
    assert exchange(bench, Supply.COMING) == []
    bench.supply[KEYS[1]] = Supply.HERE
    assert bench.flush() == KEYS[:2]


def test_no_half_of_an_exchange_waits_for_content_that_was_refused():
    bench = Bench()
    assert exchange(bench, Supply.REFUSED) == [KEYS[0]]
    assert [write.more for write in bench.flying] == [False]


def test_an_exchange_takes_in_what_it_overtook_while_it_waited():
    bench, (first, second, giver) = Bench(), KEYS[:3]
    bench.settled(held(first, 1), held(second, 1))
    bench.put(held(second, 2), supply=Supply.COMING)
    assert bench.put(held(first, 3, last_loss=3)) == []
    bench.order = next_batch(bench.order)
    bench.put(held(giver, 4), supply=Supply.COMING)
    assert bench.put(replace(held(second, 5, last_loss=5), order=bench.order + 1)) == []
    assert bench.flush() == []
    bench.supply[giver] = Supply.HERE
    assert bench.flush() == [giver, first, second]
    assert [write.more for write in bench.flying] == [False, True, False]


def test_after_a_run_that_was_broken_off_no_mail_ends_an_exchange_before_its_other_half():
    former = Bench()
    exchange(former)
    former.flying.pop()
    former.confirm()
    bench = Bench()
    bench.boxes.restore("a", former.stream[KEYS[1]])
    bench.boxes.restore("a", former.stream[KEYS[0]])
    bench.stream, bench.sequence = dict(former.stream), former.sequence
    bench.boxes.calm = False
    assert bench.boxes.is_open("a")
    assert bench.put(held(KEYS[1], 2, last_loss=2)) == []
    assert bench.put(held(KEYS[2], 3)) == [KEYS[2]]
    bench.boxes.calm = True
    assert bench.flush() == [KEYS[1]]
    assert [write.more for write in bench.flying] == [True, False]
    assert bench.boxes.is_open("a")
    bench.confirm_all()
    assert not bench.boxes.is_open("a")


def test_what_only_takes_is_nothing_to_wait_for():
    bench = Bench()
    bench.settled(*(held(key, 1) for key in KEYS[:3]))
    bench.boxes.calm = False
    bench.put(held(KEYS[0], 2, last_loss=2))
    for key in KEYS[1:3]:
        bench.put(held(key, 2, deleted=True), Send.BARE)
    bench.boxes.calm = True
    assert bench.flush() == KEYS[:3]
    assert [write.more for write in bench.flying] == [False] * 3
