"""The page shows who signed what, up to an object's hash, and no key and no Secret's hash."""

import json
from dataclasses import replace

import pytest

from leafcast.object_proofs import ObjectProof
from leafcast.proofs import check_proof
from leafcast.ui.proved import proof_form_of
from schemas.objects.objects import ObjectKey
from tests.doubles.page_facts import InventedFacts
from tests.doubles.proofs import CART_KEY, SEALING, SIGNING, object_proof, signed_proof
from tests.page_client import let_in

MOST = 200
CLEAR, CLOSED, OPENED = (
    object_proof(),
    object_proof(SEALING),
    object_proof(SEALING, SEALING.key),
)
AT = "--at /region-1/site-1"


@pytest.mark.parametrize(
    ("proof", "sealed", "closed", "source"),
    [
        (CLEAR, False, False, "uid u-1, revision 7"),
        (CLOSED, True, True, ""),
        (OPENED, True, False, "uid u-1, revision 7"),
    ],
    ids=["clear", "closed", "opened"],
)
def test_an_object_is_shown_from_the_roots_to_its_hash(proof, sealed, closed, source):
    form = proof_form_of(proof, MOST)
    (row,) = form["rows"]
    listed = check_proof(proof).records[0].listed
    assert (form["tone"], form["object"]) == ("good", "configmaps/shop/cart")
    assert (row["key"], row["placement"], row["refused"]) == (SIGNING.key_id, "epl/shop", "")
    assert row["object"] == {
        "manifest": listed.manifest,
        "address": listed.address,
        "source": source,
        "customized": False,
        "sealed": sealed,
        "closed": closed,
    }
    made, checked = form["commands"]
    opened = " --with-key" if sealed else ""
    assert made.startswith(f"leafcast proof --object configmaps/cart -n shop {AT}{opened} -o json")
    assert checked.endswith("-f MANIFEST.yaml")


def test_no_key_that_opens_what_is_sealed_comes_to_the_page():
    assert SEALING.key.hex() not in json.dumps(proof_form_of(OPENED, MOST))


def test_the_hash_of_a_secret_is_shown_of_what_is_sealed_alone():
    secret = ObjectKey("", "secrets", "shop", "door")
    for proof, shown in ((CLEAR, False), (CLOSED, True)):
        address = proof.about.lists[0].address
        form = proof_form_of(replace(proof, about=replace(proof.about, key=secret)), MOST)
        assert form["isSecret"]
        assert (address in json.dumps(form)) is shown


def test_what_nobody_signed_is_bad_and_what_nobody_delivers_is_not_called_signed():
    other = ObjectKey("", "configmaps", "shop", "`id`")
    bad = proof_form_of(replace(CLEAR, about=replace(CLEAR.about, key=other)), MOST)
    assert (bad["tone"], bad["rows"][0]["tone"], bad["commands"]) == ("bad", "bad", [])
    assert "does not list" in bad["rows"][0]["refused"]
    none = proof_form_of(replace(CLEAR, records=(), about=ObjectProof(CART_KEY, ())), MOST)
    assert (none["tone"], none["rows"], none["commands"]) == ("none", [], [])
    assert "No placement delivers configmaps/shop/cart" in none["headline"]


def test_a_proof_of_placements_is_of_no_object():
    form = proof_form_of(signed_proof(), MOST)
    assert (form["object"], form["rows"][0]["object"]) == ("", None)
    assert form["commands"][0] == f"leafcast proof {AT} -o json > proof.json"


async def test_a_word_that_names_no_object_is_refused_and_not_asked_for():
    async with let_in(facts := InventedFacts()) as client:
        async with client.asked("/api/v1/proof?at=/a&object=none") as answer:
            assert answer.status == 400
            assert "names none" in (await answer.json())["error"]["message"]
        assert facts.asked == 0
        async with client.asked("/api/v1/proof?at=/a&object=configmaps/shop/cart") as answer:
            assert (await answer.json())["view"]["object"] == "configmaps/shop/cart"
