"""What an edit takes of a placement is weighed: little goes at once, much waits for a word."""

import pytest

from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.weighing import Confirmations, Delivered, Loss, weigh
from controllers.core.translation.placements import Placements
from controllers.core.translation.translate import IssuedDelta
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.placing import check_annotations, grace_seconds
from schemas.records.records import OVER_LOCATION, OVER_SYNC_TARGET, Alternative
from schemas.values import wire
from schemas.values.faults import Faulty
from schemas.values.identity import MailKey
from tests.unit.centre_world import config, placement
from tests.unit.test_centre_decisions import keyed
from tests.unit.test_destination_counts import SPACE, delta, location, profile, selector

PLACES = [location("place", LabelSelector(), at="here")]
FEW = [profile(f"t{n}", region="1" if n < 3 else "2") for n in range(5)]
MANY = [profile(f"t{n:03}", region=str(n % 10)) for n in range(100)]
HERE = Alternative(OVER_LOCATION, selector(at="here"))
FIRST = Alternative(OVER_SYNC_TARGET, selector(region="1"))
EVERY = Alternative(OVER_SYNC_TARGET, LabelSelector())


def objects(count, prefix="c"):
    return frozenset(ObjectKey("", "configmaps", "shop", f"{prefix}{n}") for n in range(count))


def seen(records):
    inventory = SelectedDestinations(records)
    return inventory, inventory


def test_ten_copies_or_fewer_go_at_once_however_large_a_part_they_are():
    before = Delivered((EVERY,), objects(2))
    ten = weigh(seen(FEW), before, Delivered((), objects(2)))
    assert ten == Loss(10, 5, 5, 5, 0, 2)
    assert not ten.is_large
    eleven = weigh(seen([*FEW, profile("more")]), before, Delivered((), objects(2)))
    assert eleven.copies == 12
    assert eleven.is_large


def test_a_fifth_of_the_destinations_or_fewer_go_at_once_however_many_copies_they_have():
    before, fewer = Delivered((EVERY,), objects(50)), objects(50)
    not_all = LabelSelector.from_kubernetes(
        {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["1", "2"]}]}
    )
    after = Delivered((Alternative(OVER_SYNC_TARGET, not_all),), fewer)
    loss = weigh(seen(MANY), before, after)
    assert (loss.copies, loss.destinations) == (1000, 20)
    assert not loss.is_large
    assert weigh(seen(MANY), before, Delivered((FIRST,), fewer)).is_large


def test_a_fifth_of_the_objects_or_fewer_go_at_once():
    before = Delivered((EVERY,), objects(10))
    for left, large in ((8, False), (7, True)):
        loss = weigh(seen(MANY), before, Delivered((EVERY,), objects(left)))
        assert loss.copies == 100 * (10 - left)
        assert loss.is_large is large


def test_what_another_placement_gives_a_destination_is_not_lost():
    before, after = Delivered((EVERY,), objects(10)), Delivered((), objects(10))
    others = [Delivered((FIRST,), objects(10)), Delivered((EVERY,), objects(4))]
    loss = weigh(seen(MANY), before, after, others)
    assert loss == Loss(90 * 6, 90, 90, 100, 0, 10)
    assert weigh(seen(MANY), before, after, [before]) == Loss(0, 0, 0, 100, 0, 10)


def test_of_one_that_moves_nothing_is_lost_unless_nobody_has_it_any_more():
    second = Alternative(OVER_SYNC_TARGET, selector(region="2"))
    before, after = Delivered((FIRST,), objects(50)), Delivered((second,), objects(50))
    assert weigh(seen(MANY), before, after).is_large
    assert weigh(seen(MANY), before, after, moves=True).copies == 0
    nowhere = Delivered((), objects(50))
    assert weigh(seen(MANY), before, nowhere, moves=True).copies == 500


def test_a_word_lets_so_many_copies_go_once_and_not_later():
    confirmed = Confirmations()
    key = MailKey("k")
    assert not confirmed.covers(key, 1, 0)
    confirmed.allow(key, 80, until=60)
    assert not confirmed.covers(key, 81, 1)
    assert confirmed.covers(key, 50, 1)
    assert confirmed.covers(key, 30, 1)
    assert not confirmed.covers(key, 1, 1)
    confirmed.allow(key, 80, until=60)
    assert not confirmed.covers(key, 1, 60)


class Shop:
    """A placement of twenty objects at five destinations, and what its space says next."""

    def __init__(self, **annotations):
        names = [f"c{n}" for n in range(20)]
        self.annotations = annotations
        self.configs = [config(name, tier="a" if n < 12 else "b") for n, name in enumerate(names)]
        self.ledger = {record.source.key: record for record in (*FEW, *PLACES)}
        self.confirmed = Confirmations()
        self.seen = self.restarted({})
        self.say(selectors=({"matchLabels": {"at": "here"}},))

    def restarted(self, issued):
        brakes = LabelBrakes(self.ledger, self.confirmed)
        return Placements(SPACE, issued, self.ledger, brakes=brakes)

    def restart(self):
        self.seen = self.restarted(self.seen.standing())
        self.list()

    def list(self):
        self.step(self.seen.listed(keyed(self.placement, *self.configs)))

    def say(self, now_ms=0, **spec):
        self.placement = placement(**spec)
        self.placement["metadata"]["annotations"] = self.annotations
        if not self.seen.known:
            self.list()
            return
        ((key, obj),) = keyed(self.placement).items()
        self.step(self.seen.put(key, obj), now_ms)

    def step(self, names, now_ms=0):
        works = self.seen.next(names, now_ms)
        drafts = [work.draft.record for work in works if work.draft is not None]
        records = [wire.replace(record, generation=2) for record in drafts]
        self.ledger.update((record.source.key, record) for record in records)
        self.seen.issued(works, records)
        return works

    @property
    def head(self):
        return self.seen.standing()["shop"].head

    @property
    def objects(self):
        return len(self.seen.entries("shop"))


TYPED_WRONG = ({"matchLabels": {"ta": "here"}},)
RIGHT = ({"matchLabels": {"at": "here"}},)


def test_a_selector_typed_wrong_takes_nothing_until_someone_accepts():
    shop = Shop()
    shop.say(selectors=TYPED_WRONG)
    assert HERE in shop.head.alternatives
    assert "100 copies at 5 destinations" in shop.seen.held["shop"]
    assert "leafcast accept epl/shop" in shop.seen.held["shop"]
    shop.step(shop.seen.accept("shop"))
    assert HERE not in shop.head.alternatives
    assert not shop.seen.held
    # Only what was held then went: the next one waits again.
    shop.say(selectors=RIGHT)
    shop.say(selectors=TYPED_WRONG)
    assert shop.seen.held


def test_to_put_an_edit_back_leaves_all_as_it_was():
    shop = Shop()
    before = shop.head
    shop.say(selectors=TYPED_WRONG)
    shop.say(selectors=RIGHT)
    assert (shop.head.alternatives, shop.objects) == (before.alternatives, 20)
    assert not shop.seen.held
    assert not shop.seen.brake.held


def test_a_restart_amid_a_hold_lets_nothing_go():
    shop = Shop()
    shop.say(selectors=TYPED_WRONG)
    shop.restart()
    assert HERE in shop.head.alternatives
    assert shop.seen.held
    shop.say(selectors=RIGHT)
    assert shop.head.alternatives == (HERE,)


def test_objects_that_an_edit_selects_no_more_stay_while_what_it_adds_goes_out():
    shop = Shop()
    shop.configs.append(config("new", tier="b"))
    clause = {"namespaces": ["shop"], "labelSelectors": [{"matchLabels": {"tier": "b"}}]}
    shop.say(selectors=RIGHT, clause=clause)
    key, obj = next(iter(keyed(shop.configs[-1]).items()))
    shop.step(shop.seen.put(key, obj))
    assert shop.objects == 21
    assert "60 copies" in shop.seen.held["shop"]
    shop.step(shop.seen.accept("shop"))
    assert shop.objects == 9


def test_a_kind_that_is_followed_no_more_is_weighed_like_any_edit():
    shop = Shop()
    shop.say(selectors=RIGHT, clause={"namespaces": ["shop"], "resources": ["secrets"]})
    shop.seen.keep_kinds({("", "secrets"), ("", "namespaces")})
    shop.step({"shop"})
    assert shop.objects == 20
    assert "100 copies" in shop.seen.held["shop"]


def test_who_deletes_objects_by_their_names_means_it():
    shop = Shop()
    for key in keyed(*shop.configs):
        shop.step(shop.seen.deleted(key))
    assert shop.objects == 0
    assert not shop.seen.held


def test_what_is_held_and_then_deleted_goes():
    shop = Shop()
    shop.say(
        selectors=RIGHT,
        clause={"namespaces": ["shop"], "labelSelectors": [{"matchLabels": {"tier": "b"}}]},
    )
    for key in list(keyed(*shop.configs))[:10]:
        shop.step(shop.seen.deleted(key))
    # Two are left, at five destinations: ten copies.
    assert shop.objects == 8
    assert not shop.seen.held


def test_who_deletes_a_placement_by_its_name_means_it():
    shop = Shop()
    ((key, _),) = keyed(shop.placement).items()
    (work,) = shop.step(shop.seen.deleted(key))
    assert work.translation is None


def test_a_grace_lets_it_go_by_itself_and_none_turns_the_hold_off():
    shop = Shop(**{"leafcast.io/removal-grace": "5m"})
    shop.say(now_ms=1000, selectors=TYPED_WRONG)
    assert [*shop.seen.brake.due.values()] == [301_000]
    assert "at 1970-01-01T00:05:01Z by itself" in shop.seen.held["shop"]
    shop.step({"shop"}, 300_999)
    assert HERE in shop.head.alternatives
    shop.step({"shop"}, 301_000)
    assert HERE not in shop.head.alternatives
    assert not shop.seen.brake.due
    shop = Shop(**{"leafcast.io/removal-grace": "0s"})
    shop.say(selectors=TYPED_WRONG)
    assert HERE not in shop.head.alternatives


def test_what_was_confirmed_is_not_held():
    shop = Shop()
    shop.confirmed.allow(shop.head.source.key, 100, until=60_000)
    shop.say(now_ms=1, selectors=TYPED_WRONG)
    assert HERE not in shop.head.alternatives
    shop.say(now_ms=2, selectors=RIGHT)
    shop.say(now_ms=3, selectors=TYPED_WRONG)
    assert shop.seen.held


@pytest.mark.parametrize("said", ["soon", "5", "5 minutes", "-1s", "", "721h"])
def test_a_grace_that_is_no_duration_is_refused_with_the_remedy(said):
    with pytest.raises(Faulty) as refused:
        check_annotations("shop", {"leafcast.io/removal-grace": said})
    assert "removal-grace" in str(refused.value)
    assert "5m" in str(refused.value)


def test_a_grace_that_is_misspelt_is_refused_with_what_was_meant():
    with pytest.raises(Faulty, match=r"did you mean leafcast.io/removal-grace"):
        check_annotations("shop", {"leafcast.io/removal-grce": "5m"})


def test_a_grace_is_read_in_seconds():
    assert grace_seconds({"leafcast.io/removal-grace": "5m"}) == 300
    assert grace_seconds({"leafcast.io/removal-grace": "0s"}) == 0
    assert grace_seconds({}) is None


def test_a_ledger_that_nobody_can_read_is_no_loss():
    head = delta("shop", HERE)
    ledger = {record.source.key: record for record in (*FEW, *PLACES, head)}
    seen = Placements(SPACE, {"shop": IssuedDelta((), None, head=head)}, ledger)
    seen.next(seen.listed(keyed(placement(selectors=TYPED_WRONG))))
    assert "lost" in seen.held["shop"]
