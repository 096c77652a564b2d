"""`leafcast keys` where no tree is asked: roots are made and sign offline; wrong words are told."""

import pytest
from click.testing import CliRunner

from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    KeysRefused,
    Stamp,
    changed_record,
    completed,
    request_of,
)
from controllers.issuing.keys import new_signer
from leafcast.cli.commands.keys import keys
from leafcast.key_files import read_public, read_request, request_form
from leafcast.key_form import KeyFileRefused, write_key_form
from relay.adapters.clock import SystemDice
from schemas.values.identity import TreeId

TREE, DICE = TreeId("t" * 26), SystemDice()


def run(*words):
    result = CliRunner().invoke(keys, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def ring():
    """The keys of a tree, whose one root is here."""
    made = KeyRing(TREE, new_signer(TREE, DICE), (new_signer(TREE, DICE),))
    record = changed_record(made, KeyChange(), Stamp(1000, "00" * 8), (), alone=True)
    return completed(made, request_of(made, record), 1000)


def test_two_holders_sign_one_file_after_the_other(tmp_path, ring):
    files = [tmp_path / f"{name}.key" for name in "abc"]
    for file in files:
        assert "keep it, and hand on" in run("make", file).output
    roots = dict(read_public(file.with_name(f"{file.name}.pub")) for file in files)
    change = KeyChange(roots=roots, threshold=2)
    record = changed_record(ring, change, Stamp(2000, "00" * 8), (), alone=False)
    request = tmp_path / "request.json"
    write_key_form(request, request_form(request_of(ring, record)))
    for file in files[1:]:
        said = run("sign", request, "--key", file).output
        assert f"tree {TREE}" in said
        assert "roots, version 2: 2 of" in said
        assert f"signs: {ring.signing.key_id}" in said
    found = completed(ring, read_request(request), 2000)
    assert found.pinned.threshold == 2
    assert found.roots == ()


def test_a_tree_is_never_left_without_a_root(ring):
    with pytest.raises(KeysRefused, match="no root would be left; name new ones"):
        changed_record(ring, KeyChange(roots={}), Stamp(2000, "00" * 8), (), alone=False)


def test_a_key_that_is_there_is_not_overwritten(tmp_path):
    file = tmp_path / "a.key"
    run("make", file)
    before = file.read_text()
    with pytest.raises(KeyFileRefused, match="there already; name another file"):
        run("make", file)
    assert file.read_text() == before


@pytest.mark.parametrize("words", [["rotate", "signing"], ["rotate", "root"], ["revoke", "abc"]])
def test_a_request_takes_the_place_of_no_other_file(tmp_path, words):
    file = tmp_path / "a.key"
    run("make", file)
    before = file.read_text()
    with pytest.raises(KeyFileRefused, match=r"a\.key: it is no leafcast keys request"):
        run(*words, "--request", file, "--data-dir", tmp_path)
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rotate", "all"], "'all' is not one of 'signing', 'root', 'authority'"),
        (["rotate", "placement"], "is of one: name it"),
        (["rotate", "fleet", "shop"], "is of one: name it"),
        (["rotate", "fleet", "--request", "r.json"], "is for what roots sign"),
        (["rotate", "fleet", "--threshold", "2"], "are of `keys rotate root`"),
        (["rotate", "signing", "--threshold", "2"], "are of `keys rotate root`"),
        (["rotate", "root", "--threshold", "17"], "17 is not in the range"),
        (["revoke"], "Missing argument 'ID'"),
        (["sign", "request.json"], "Missing option '--key'"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_asked(words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.output
