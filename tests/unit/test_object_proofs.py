"""A proof of an object leads from a signature to its hash, and whoever alters it is seen."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from leafcast.ask.api import Api
from leafcast.ask.decode import BadAnswer, read_proof
from leafcast.ask.failures import CallFailed
from leafcast.ask.proofs import asked_object_proof, with_keys
from leafcast.cli.commands.verify import verify
from leafcast.daemon.verbs.keys import ContentKeys, KeyVerbs
from leafcast.object_proofs import ObjectProof, ShownList
from leafcast.proof_text import proof_lines
from leafcast.proofs import check_proof, proof_form, proof_from
from leafcast.signed_manifests import is_signed
from schemas.content.blobs import open_stored
from schemas.content.manifest import build_manifest
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.records.signing import decode_envelope
from schemas.values import wire
from schemas.values.identity import ContentHash, NodePath
from tests.doubles.proofs import CART, CART_KEY, SEALING, TREE, delta, entry, object_proof
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_destination import Bench, X, Y, mail_key

SITE = NodePath.parse("/emea/s1")
STRANGE = SealingKey(TREE, b"s" * 16)


def listed(proof):
    """What became of its one record."""
    (record,) = check_proof(proof).records
    return record.listed


def shown(proof, **changes):
    """The same where a node shows something else beside the message."""
    (shows,) = proof.about.lists
    return replace(proof, about=replace(proof.about, lists=(replace(shows, **changes),)))


def test_an_object_is_followed_from_the_signature_to_its_source():
    proof = object_proof()
    assert check_proof(proof).good
    found = listed(proof).entry
    assert (found.key, found.uid, found.revision) == (CART_KEY, "u-1", 7)
    text = "\n".join(proof_lines(proof, check_proof(proof)))
    assert f"object    {found.address}" in text
    assert "uid u-1, revision 7" in text


def test_only_what_was_signed_fits_as_it_is_written_or_as_it_would_be_sent():
    found = listed(object_proof())
    metadata = CART["metadata"]
    assert is_signed(found, CART)
    assert is_signed(found, {**CART, "metadata": {"name": "cart"}})
    assert is_signed(found, {**CART, "metadata": {**metadata, "uid": "u-1"}, "status": {}})
    assert not is_signed(found, {**CART, "data": {"ttl": "86401"}})
    assert not is_signed(found, {**CART, "metadata": {**metadata, "name": "c1"}})


def forged():
    """A whole list of another content of the object."""
    nowhere = ContentHash("0" * 64)
    stored = build_manifest([wire.replace(entry("cart"), address=nowhere)])
    return ShownList(*map(open_stored, stored), nowhere)


OTHER, FORGED = object_proof(SEALING), forged()
ALTERED = {
    "another object": lambda it: replace(
        it, about=replace(it.about, key=ObjectKey("", "configmaps", "shop", "wish"))
    ),
    "another address": lambda it: shown(it, address=ContentHash("0" * 64)),
    "another chunk": lambda it: shown(it, chunk=FORGED.chunk, address=FORGED.address),
    "another manifest": lambda it: replace(it, about=ObjectProof(CART_KEY, (FORGED,))),
    "a sealed list": lambda it: replace(it, about=OTHER.about),
    "no body": lambda it: replace(
        it, records=tuple(decode_envelope(data).bare().encode() for data in it.records)
    ),
    "another body": lambda it: replace(
        it,
        records=tuple(
            replace(decode_envelope(data), body=decode_envelope(other).body).encode()
            for data, other in zip(it.records, OTHER.records, strict=True)
        ),
    ),
    "a body that is none": lambda it: replace(it, records=(delta("shop", 43, body=b"none"),)),
    "a manifest that is none": lambda it: shown(it, manifest=b"none"),
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_whatever_a_node_shows_otherwise_makes_the_proof_bad(alter):
    checked = check_proof(alter(object_proof()))
    assert not checked.good
    assert checked.records[0].listed.refused


def test_what_is_sealed_is_the_nodes_word_up_to_whoever_has_the_key():
    closed, opened = object_proof(SEALING), object_proof(SEALING, SEALING.key)
    assert check_proof(closed).good
    assert listed(closed).is_closed
    assert not is_signed(listed(closed), CART)
    assert "is the node's word" in "\n".join(proof_lines(closed, check_proof(closed)))

    assert check_proof(opened).good
    assert (listed(opened).is_closed, listed(opened).entry.uid) == (False, "u-1")
    assert is_signed(listed(opened), CART)
    assert not is_signed(listed(opened), {**CART, "data": {}})


@pytest.mark.parametrize(
    "proof",
    [
        shown(object_proof(SEALING), address=ContentHash("0" * 64)),
        object_proof(SEALING, STRANGE.key),
        ALTERED["another object"](object_proof(SEALING, SEALING.key)),
    ],
    ids=["not listed", "another key", "another object"],
)
def test_what_is_sealed_is_not_taken_for_another(proof):
    assert not check_proof(proof).good


@pytest.mark.parametrize("proof", [object_proof(), object_proof(SEALING, SEALING.key)])
def test_a_proof_of_an_object_is_the_same_in_a_file(proof):
    form = json.loads(json.dumps(proof_form(proof)))
    assert proof_from(form) == proof
    with pytest.raises(ValueError, match="0 lists"):
        proof_from({**form, "lists": []})


@pytest.mark.parametrize(
    ("proof", "obj", "code", "said"),
    [
        (object_proof(), CART, 0, "is what epl/shop delivers"),
        (object_proof(), {**CART, "data": {}}, 1, "is not what epl/shop delivers"),
        (object_proof(SEALING), CART, 1, "epl/shop: sealed, so nothing can be held to it"),
        (object_proof(SEALING, SEALING.key), CART, 0, "is what epl/shop delivers"),
        (replace(object_proof(), about=None), CART, 2, "leafcast proof --object"),
        (ALTERED["no body"](object_proof()), CART, 1, "its message has no body"),
    ],
)
def test_the_command_holds_a_manifest_to_what_was_signed(tmp_path, proof, obj, code, said):
    file, manifest = tmp_path / "proof.json", tmp_path / "cart.yaml"
    file.write_text(json.dumps(proof_form(proof)))
    manifest.write_text(yaml.safe_dump(obj))
    found = CliRunner().invoke(verify, [str(file), "-f", str(manifest)])
    assert (found.exit_code, said in found.output) == (code, True), found.output


def test_a_node_that_tells_of_all_placements_proves_no_object():
    records = [{"key": "a", "message": "00"}]
    answer = {"keys": "", "records": records, "next": ""}
    assert read_proof(answer, "").records[0].message == "00"
    with pytest.raises(BadAnswer, match="upgrade it"):
        read_proof(answer, "", of_object=True)


class Commands:
    """A command's session with a tree in memory: the verbs are those of a daemon."""

    def __init__(self, tree):
        self.clock, self.workloads = tree.clock, tree.workloads
        centre = SimpleNamespace(
            keys=lambda: tree.keys,
            issuer=lambda: tree.controllers.issuer,
            controllers=tree.controllers,
        )
        self._api = Api()
        self._api.serve(KeyVerbs(centre, tree.dice), ContentKeys(centre, tree.dice), tree.asks)

    async def call(self, verb, /, **said):
        answer = await self._api.answer(f"leafcast.api.{verb}", json.dumps(said).encode())
        answer = json.loads(answer)
        if "error" in answer:
            raise CallFailed(verb, **answer["error"])
        return answer["result"]


@pytest.mark.leaps
async def test_an_edge_proves_what_it_has_and_a_relay_has_no_object(tmp_path):
    web, names = config_map("web", "shop", at="1"), [f"c{at}" for at in range(10)]
    key = ObjectKey("", "configmaps", "shop", "web")
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await tree.apply(
            web,
            *(config_map(name, "shop") for name in names),
            placement("shop", "shop"),
            placement("again", "shop"),
            config_map("other", "elsewhere"),
            placement("other", "elsewhere"),
        )
        for name in ("shop", "again", "other"):
            await tree.until(name, lambda it: it.exact and it.summary.states == {"synced": 1})
        session = Commands(tree)
        closed = await asked_object_proof(session, SITE, key)
        assert check_proof(closed).good
        assert {it.placement for it in check_proof(closed).records} == {"epl/again", "epl/shop"}
        assert all(it.listed.is_closed for it in check_proof(closed).records)

        proof = await with_keys(session, closed)
        checked = check_proof(proof)
        assert checked.good
        uid = (await tree.workloads.get(key))["metadata"]["uid"]
        assert [it.listed.entry.uid for it in checked.records] == [uid, uid]
        assert all(is_signed(it.listed, web) for it in checked.records)
        alone = await asked_object_proof(session, SITE, key, "shop")
        assert [it.placement for it in check_proof(alone).records] == ["epl/shop"]

        gone = await asked_object_proof(session, SITE, ObjectKey("", "configmaps", "shop", "none"))
        assert gone.records == ()
        with pytest.raises(CallFailed, match="no cluster"):
            await asked_object_proof(session, SITE.parent, key)


def test_only_who_delivers_an_object_as_it_is_wanted_shows_it():
    bench = Bench()
    newer = wire.replace(X, address=f"{7:064x}", revision=2)
    bench.put(1, entries=[X])
    bench.put(2, entries=[newer, Y])
    bench.put(3, entries=[wire.replace(X, space="another", address=f"{8:064x}")])
    root = build_manifest([newer, Y])[0].reference
    assert list(bench.edge.copies.listed(X.key)) == [(mail_key(3), root, newer.address)]

    bench.put(2, entries=[wire.replace(newer, revision=3), Y], serve=False)
    assert list(bench.edge.copies.listed(X.key)) == []
    assert list(bench.edge.copies.listed(CART_KEY)) == []
