"""Objects are customized in turns: what one placement needs holds up nothing else."""

import pytest

from relay.core.destination.customized_forms import (
    FAILED_STEPS,
    TURN_STEPS,
    CustomizedForms,
    NotCustomized,
)
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import TEMPLATE, Manifest, ManifestEntry
from schemas.records.properties import Properties, PropertyLayer
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey

SHOP, OTHER = MailKey("shop"), MailKey("other")
COUNT = 10


def reference(text, kind=blobs.TEMPLATE):
    return Reference(kind, codec.address(kind, text), len(text))


ARM, NEXT = reference(b"one", blobs.MANIFEST), reference(b"two", blobs.MANIFEST)


def content(*names, flags=TEMPLATE):
    plains = {reference(name.encode()).address: name.encode() for name in names}
    entries = tuple(
        ManifestEntry(
            "",
            "configmaps",
            "shop",
            name,
            reference(name.encode()).address,
            len(name),
            "s",
            1,
            flags,
        )
        for name in names
    )
    return Manifest(entries, (), None), plains


class Customizing:
    """Customizes at a price, and counts."""

    def __init__(self, steps):
        self.steps = steps
        self.done = []

    def __call__(self, key, plain, _by, values, _where):
        self.done.append(plain.decode())
        if plain == b"wrong":
            raise NotCustomized("it is wrong")
        said = values.get("tier")
        address = codec.address(blobs.OBJECT, plain + (said or "").encode())
        return ContentHash(address), (("tier", said),), self.steps


def properties(tier):
    return Properties("edge", (PropertyLayer("label", "SyncTarget s", {"tier": tier}),))


@pytest.fixture
def customizing():
    return Customizing(TURN_STEPS // 3)


@pytest.fixture
def forms(customizing):
    return CustomizedForms(customizing)


def turns(forms, placement):
    """In how many turns it is done, and what came of it."""
    count = 1
    while (done := forms.go_on(placement)) is None:
        assert forms.deadline() == 0.0
        assert placement in forms.begin_turn()
        count += 1
    return count, done


def test_a_placement_is_customized_in_turns_and_each_object_once(forms, customizing):
    forms.begin(SHOP, ARM, *content(*map(str, range(COUNT))))
    count, done = turns(forms, SHOP)
    assert count == COUNT // 4 + 1
    assert customizing.done == list(map(str, range(COUNT)))
    assert {key.name for key in done.made} == set(customizing.done)
    assert forms.deadline() is None
    assert forms.begin_turn() == []


def test_a_turn_is_for_all_placements_together(forms, customizing):
    forms.begin(SHOP, ARM, *content(*map(str, range(COUNT))))
    forms.begin(OTHER, ARM, *content("x"))
    assert forms.go_on(SHOP) is None
    assert forms.go_on(OTHER) is None
    assert len(customizing.done) == 4
    # Whatever else needs no customizing waits for none of it.
    forms.begin(MailKey("plain"), ARM, *content("y", flags=0))
    assert forms.go_on(MailKey("plain")).made == {}


def test_what_is_begun_again_of_the_same_content_goes_on(forms, customizing):
    for _ in range(COUNT):
        forms.begin(SHOP, ARM, *content(*map(str, range(COUNT))))
        forms.begin_turn()
        if forms.go_on(SHOP) is not None:
            break
    assert customizing.done == list(map(str, range(COUNT)))


def test_what_other_properties_say_is_true_of_all_objects(forms, customizing):
    forms.put(properties("one"))
    forms.begin(SHOP, ARM, *content(*map(str, range(COUNT))))
    assert forms.go_on(SHOP) is None
    forms.put(properties("two"))
    forms.begin_turn()
    _, done = turns(forms, SHOP)
    assert {form.values for form in done.made.values()} == {(("tier", "two"),)}
    assert len(done.made) == COUNT


def test_another_content_ends_what_is_under_way(forms, customizing):
    forms.begin(SHOP, ARM, *content(*map(str, range(COUNT))))
    assert forms.go_on(SHOP) is None
    forms.end_other(SHOP, ARM)
    assert forms.begin_turn() == [SHOP]
    forms.end_other(SHOP, NEXT)
    assert forms.begin_turn() == []
    forms.begin(SHOP, NEXT, *content("a"))
    assert turns(forms, SHOP)[1].arm == NEXT


def test_what_cannot_be_customized_takes_its_share_of_a_turn(customizing):
    customizing.steps = 0
    forms = CustomizedForms(customizing)
    forms.begin(SHOP, ARM, *content("wrong", *map(str, range(COUNT))))
    _, done = turns(forms, SHOP)
    assert [(key.name, why) for key, why in done.failed.items()] == [("wrong", "it is wrong")]
    many = [f"n{at}" for at in range(COUNT)]
    entries, plains = content("wrong", *many)
    forms.begin(SHOP, ARM, Manifest(entries.entries[:1] * COUNT, (), None), plains)
    count, _ = turns(forms, SHOP)
    assert count >= COUNT * FAILED_STEPS // TURN_STEPS
