"""A proof is good if each signature leads to the root keys, whoever made the file."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from leafcast.cli.commands.verify import verify
from leafcast.key_files import write_root
from leafcast.key_form import KeyFileRefused
from leafcast.proofs import check_proof, proof_form, proof_from, read_proof_file
from schemas.records.roots import Roots
from schemas.records.signing import Signer, decode_envelope
from schemas.values.identity import KeyId
from tests.doubles.proofs import (
    ROOT_SIGNERS,
    SIGNING,
    TREE,
    delta,
    grants,
    keys,
    signed_proof,
)

STRANGER = Signer(TREE, KeyId("x" * 26), b"x" * 32)
FORGER = Signer(TREE, SIGNING.key_id, b"x" * 32)


def test_each_placement_is_named_with_the_key_that_signed_it():
    checked = check_proof(signed_proof())
    assert checked.good
    assert checked.keys.signers == (ROOT_SIGNERS[0].key_id, ROOT_SIGNERS[1].key_id)
    assert [(it.placement, it.generation, it.key_id) for it in checked.records] == [
        ("epl/monitoring", 43, SIGNING.key_id),
        ("epl/shop", 44, SIGNING.key_id),
    ]


def altered(data):
    envelope = decode_envelope(data)
    return replace(envelope, payload=envelope.payload.replace(b"shop", b"sh0p")).encode()


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (altered(delta("shop", 1)), "its signature does not fit"),
        (delta("shop", 1, FORGER), "its signature does not fit"),
        (delta("shop", 1, STRANGER), "signed by a key that is not known here"),
        (b"nothing", "it cannot be read"),
    ],
)
def test_one_record_that_nobody_in_force_signed_makes_a_proof_bad(record, why):
    proof = signed_proof()
    checked = check_proof(replace(proof, records=(*proof.records, record)))
    assert not checked.good
    assert [bool(it.refused) for it in checked.records] == [False, False, True]
    assert why in checked.records[2].refused


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (keys(ROOT_SIGNERS[:1], grants("delta")), "1 of the 2 root keys"),
        (keys([STRANGER, ROOT_SIGNERS[0]], grants("delta")), "1 of the 2 root keys"),
        (b"", "cannot be read"),
        (delta("shop", 1), "cannot be read"),
    ],
)
def test_without_enough_roots_nothing_counts(message, why):
    checked = check_proof(replace(signed_proof(), keys=message))
    assert why in checked.keys.refused
    assert all(it.refused for it in checked.records)


@pytest.mark.parametrize(("kinds", "why"), [((), "revoked"), (("profile",), "may not sign this")])
def test_a_key_that_may_not_sign_it_proves_nothing(kinds, why):
    message = keys(ROOT_SIGNERS[:2], grants(*kinds))
    checked = check_proof(replace(signed_proof(), keys=message))
    assert not checked.keys.refused
    assert all(why in it.refused for it in checked.records)


def test_roots_that_the_file_names_count_for_nothing_if_others_are_trusted():
    others = Roots({STRANGER.key_id: STRANGER.public_key})
    assert not check_proof(signed_proof(), others).good
    one_of_ours = Roots({ROOT_SIGNERS[0].key_id: ROOT_SIGNERS[0].public_key})
    assert check_proof(signed_proof(), one_of_ours).good


def test_a_proof_is_the_same_in_a_file():
    assert proof_from(json.loads(json.dumps(proof_form(signed_proof())))) == signed_proof()


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "leafcast proof"}', "[1]"])
def test_a_file_that_is_no_proof_is_refused_with_the_remedy(tmp_path, text):
    (tmp_path / "proof.json").write_text(text)
    with pytest.raises(KeyFileRefused, match=r"proof\.json"):
        read_proof_file(tmp_path / "proof.json")


@pytest.fixture
def files(tmp_path):
    """A proof, and public halves of the roots and of a key that is none, by name."""
    (tmp_path / "proof.json").write_text(json.dumps(proof_form(signed_proof())))
    public = {}
    for name, signer in zip("rsux", (*ROOT_SIGNERS, STRANGER), strict=True):
        file = write_root(tmp_path / name, signer.key_id, signer.seed, signer.public_key)
        public[name] = str(file)
    return {"proof": str(tmp_path / "proof.json"), **public}


@pytest.mark.parametrize(
    ("roots", "threshold", "code", "said"),
    [
        ("", (), 0, "compare them"),
        ("rs", (), 0, "each signature leads to the root keys"),
        ("rsu", (), 1, "2 of the 3 root keys"),
        ("rsu", ("--threshold", "2"), 0, "each signature leads to the root keys"),
        ("x", (), 1, "0 of the 1 root keys"),
        ("r", ("--threshold", "2"), 2, "cannot be met"),
        ("", ("--threshold", "2"), 2, "--root"),
    ],
)
def test_the_command_checks_a_file_by_the_roots_that_one_trusts(
    files, roots, threshold, code, said
):
    named = [word for it in roots for word in ("--root", files[it])]
    found = CliRunner().invoke(verify, [files["proof"], *named, *threshold])
    assert (found.exit_code, said in found.output) == (code, True), found.output
