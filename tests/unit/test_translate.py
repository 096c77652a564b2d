"""From an object set to a delta: what is said, what is refused, what is not said again."""

from dataclasses import replace

from controllers.core.access.keyring import PlacementKeys
from controllers.core.ledger.ledger import same
from controllers.core.ledger.removal import hold_objects, hold_records, removals_max
from controllers.core.translation import clean_objects
from controllers.core.translation.clean_objects import CleanObjects
from controllers.core.translation.translate import (
    DeltaRules,
    IssuedDelta,
    alternatives_of,
    bare_head,
    translate,
)
from controllers.core.workloads.clean_copies import clean
from schemas.api.placement import EdgePlacementSpec
from schemas.content.blobs import OBJECT_MAX_BYTES, open_value
from schemas.content.manifest import CREATE_ONLY
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.objects.order import ARGO_WAVE
from schemas.objects.selectors import LabelSelector
from schemas.objects.source_objects import SourceObject
from schemas.records.records import Source, decode_body
from schemas.reports.collectors import BlankValue, Expression, Program, read_program_set
from schemas.values import wire
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import Generation, TreeId
from schemas.values.ordered_values import pack_values

EVERYWHERE = EdgePlacementSpec(location_selectors=(LabelSelector(),))
HEAD = bare_head(Source(API_PLACEMENT, "space", "", "shop"), alternatives_of(EVERYWHERE))


def key(name, resource="configmaps"):
    return ObjectKey("", resource, "shop", name)


def config(name, version="1", uid="u", value="1", **more):
    metadata = {"name": name, "namespace": "shop", "resourceVersion": version, "uid": uid}
    data = {"key": value}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, **more}


def objects(*items):
    return {key(item["metadata"]["name"]): item for item in items}


def say(items, before=None, held=frozenset(), flags=0):
    return translate(HEAD, dict.fromkeys(items, flags), items, CleanObjects(), before, held)


def issued(translation, generation=7):
    record = translation.draft.stamped(Generation(generation))
    return IssuedDelta(translation.gates, translation.entries, translation.kept, head=record)


def test_an_object_is_cleaned_once_for_its_address_and_its_blob(monkeypatch):
    items, cleaned = objects(config("a"), config("b", value="2"), config("c", value="3")), []

    def counting(which, obj, cleaning):
        cleaned.append(which)
        return clean(which, obj, cleaning)

    monkeypatch.setattr(clean_objects, "clean", counting)
    for keys in ((), (SealingKey(TreeId("t" * 26), b"k" * 32),)):
        rules = DeltaRules(keys=PlacementKeys(keys))
        said = translate(HEAD, dict.fromkeys(items, 0), items, CleanObjects(), rules=rules)
        assert {entry.address for entry in said.entries.values()} <= said.draft.blobs.keys()
        assert sorted(cleaned) == sorted(items)
        cleaned.clear()


def test_a_delta_has_one_gate_that_admits_all_and_names_the_manifest():
    translation = say(objects(config("a")))
    head = translation.draft.record
    body = decode_body(head, translation.draft.body.data)
    assert [gate.arm for gate in body.gates] == [body.content[0]]
    assert body.gates[-1].admits_all
    assert {reference.address for reference in body.content} <= translation.draft.blobs.keys()
    # Whoever is not meant gets the head alone, and learns of no content.


def test_blank_rows_of_what_is_sealed_are_said_without_the_object():
    program = Program("p", select=(Expression("keys", "size(obj.data) + size(obj.data.key)"),))
    found = objects(config("a", value="12"), config("b"))
    for key_of_all in ((), (SealingKey(TreeId("t" * 26), b"k" * 32),)):
        asked = dict.fromkeys(found, (program,))
        rules = DeltaRules(collectors=asked, keys=PlacementKeys(key_of_all))
        said = translate(HEAD, dict.fromkeys(found, 0), found, CleanObjects(), rules=rules)
        stored = said.draft.blobs[said.collectors[0].address]
        blanks = [
            each.blanks for each in read_program_set(open_value(said.collectors[0], stored)).objects
        ]
        sealed = [((BlankValue(1, True, False, pack_values([count])),),) for count in (3, 2)]
        assert blanks == (sealed if key_of_all else [(), ()])


def test_what_the_ledger_says_already_is_not_said_again():
    before = issued(say(objects(config("a"), config("b"))))
    again = say(objects(config("b", version="9", status={"x": 1}), config("a")), before)
    assert again.draft is None
    assert again.entries[key("b")].revision == 1


def test_an_object_made_anew_with_equal_content_is_no_news():
    before = issued(say(objects(config("a"))))
    again = say(objects(config("a", version="2", uid="v")), before)
    assert again.entries[key("a")] == before.entries[key("a")]
    assert again.draft is None


def test_an_object_made_anew_with_other_content_names_the_new_one():
    first, second = (
        config(at, value=at) | {"metadata": {**config("a", at, f"uid-{at}")["metadata"], **made}}
        for at, made in (
            ("1", {"creationTimestamp": "1970-01-01T00:00:09Z"}),
            ("2", {"creationTimestamp": "1970-01-01T00:00:09Z"}),
        )
    )
    before = issued(say({key("a"): first}))
    entry = say({key("a"): second}, before).entries[key("a")]
    assert entry.source_object == SourceObject("space", "uid-2", 9, 2)
    assert entry.source_object.succeeds(before.entries[key("a")].source_object)


def test_an_entry_of_an_older_version_stays_as_it_was_until_its_content_changes():
    said = say(objects(config("a")))
    older = {name: wire.replace(entry, uid="") for name, entry in said.entries.items()}
    before = replace(issued(say(objects(config("a", uid="")))), entries=older)
    assert say(objects(config("a")), before).draft is None
    assert say(objects(config("a", value="2")), before).entries[key("a")].uid == "u"


def test_changed_flags_are_news():
    before = issued(say(objects(config("a"))))
    assert say(objects(config("a")), before, flags=CREATE_ONLY).draft is not None


def test_only_new_blobs_are_written():
    many = [config(f"c{at}") for at in range(500)]
    before = issued(say(objects(*many)))
    many[3] = config("c3", version="2", value="2")
    assert len(say(objects(*many), before).draft.blobs) == 3  # object, its chunk, root


def test_a_lost_object_raises_last_loss_and_a_gained_one_keeps_it():
    before = issued(say(objects(config("a"), config("b"))), 7)
    lost = say(objects(config("a")), before)
    assert lost.draft.loses
    after = issued(lost, 8)
    assert after.head.last_loss == 8
    assert issued(say(objects(config("a"), config("c")), after), 9).head.last_loss == 8


def test_a_manifest_that_cannot_be_read_may_have_held_more():
    before = replace(issued(say(objects(config("a")))), entries=None)
    assert issued(say(objects(config("b")), before), 9).head.last_loss == 9


def test_content_that_is_lost_is_taken_from_the_space_again_as_far_as_it_shows_it():
    items = objects(config("a"), config("b"), config("c"))
    before = issued(say(items))
    gone = frozenset(before.entries[key(name)].address for name in "ab")
    again = say(objects(config("a"), config("c")), replace(before, lost=gone), {key("b")})
    assert again.entries == before.entries
    assert list(again.draft.blobs) == [before.entries[key("a")].address]
    assert again.lost == {before.entries[key("b")].address}
    # Nobody can send what no object shows, so it is not said again and again.
    rest = IssuedDelta(again.gates, again.entries, again.kept, again.lost, head=before.head)
    assert say(objects(config("a"), config("c")), rest, {key("b")}).draft is None
    assert say(items, rest).draft is not None


def test_an_object_over_the_limit_is_named_and_holds_up_no_other():
    translation = say(objects(config("big", value="x" * OBJECT_MAX_BYTES), config("a")))
    (fault,) = translation.faults
    assert set(translation.entries) == {key("a")}
    assert fault.path == "configmaps/shop/big"
    assert str(OBJECT_MAX_BYTES) in fault.message


def test_a_wave_that_is_none_is_named_and_the_object_stays_as_it_was():
    first = say(objects(config("a")))
    bad = config("a", version="2", value="2")
    bad["metadata"]["annotations"] = {ARGO_WAVE: "last"}
    second = say(objects(bad, config("b")), issued(first))
    (fault,) = second.faults
    assert str(fault).startswith(f'configmaps/shop/a: metadata.annotations[{ARGO_WAVE}]: "last"')
    assert "write an integer in quotes" in str(fault)
    assert second.entries[key("a")] == first.entries[key("a")]
    assert key("b") in second.entries


def test_an_object_that_grew_over_the_limit_keeps_its_last_good_content():
    before = issued(say(objects(config("a"))))
    again = say(objects(config("a", version="2", value="x" * OBJECT_MAX_BYTES)), before)
    assert again.entries == before.entries
    assert again.draft is None


def test_an_object_without_canonical_bytes_is_named():
    (fault,) = say(objects(config("a", value=float("nan")))).faults
    assert ".data.key" in fault.message


def test_a_held_object_stays_as_it_was():
    before = issued(say(objects(config("a"), config("b"))))
    again = say(objects(config("a")), before, held=frozenset({key("b")}))
    assert again.draft is None
    assert key("b") in again.entries


def test_what_takes_the_key_of_a_deleted_placement_may_be_less():
    draft = say(objects(config("a"))).draft
    assert draft.stamped(Generation(9)).last_loss == 0
    assert draft.stamped(Generation(9), again=True).last_loss == 9


def test_when_it_was_issued_makes_no_difference():
    first = issued(say(objects(config("a"))), 7).head
    assert same(first, wire.replace(first, generation=8, term="0" * 16, trace="t", last_loss=3))
    assert not same(first, wire.replace(first, rollout_since=1))
    assert not same(first, None)


def test_at_most_ten_or_a_fifth_may_go_by_inference():
    assert (removals_max(3), removals_max(50), removals_max(1000)) == (10, 10, 200)


def test_too_many_inferred_removals_are_all_held():
    before = {key(f"c{at}") for at in range(100)}
    some = {key(f"c{at}") for at in range(20)}
    kinds = {("", "configmaps")}
    assert not hold_objects(before, some, kinds).items
    more = some | {key("c20")}
    assert hold_objects(before, more, kinds).items == more


def test_a_kind_that_vanished_is_held_and_others_go():
    secret = key("s", "secrets")
    before = {key("a"), key("b"), secret}
    held = hold_objects(before, {key("a"), secret}, {("", "configmaps")})
    assert held.items == {secret}
    assert "secrets" in held.reason


def test_records_of_which_none_is_seen_are_held():
    assert hold_records(["a"], {"a"}, "synctargets", seen_any=False).items == {"a"}
    assert not hold_records(["a", "b"], {"a"}, "synctargets", seen_any=True).items


def test_an_annotation_that_nobody_reads_is_a_fault_that_keeps_the_last_good_content():
    first = say(objects(config("a")))
    misspelt = config("a")
    misspelt["metadata"]["annotations"] = {"leafcast.io/on-remove": "keep"}
    second = say(objects(misspelt), issued(first))
    (fault,) = second.faults
    assert "did you mean leafcast.io/on-removal?" in str(fault)
    assert second.entries == first.entries
