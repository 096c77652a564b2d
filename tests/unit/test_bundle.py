"""A join bundle is what was made, or it is refused with a reason and a remedy."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcast.data_dir import DataDirUnusable
from leafcast.join.bundle import Bundle, BundleRefused, check_expiry, read_bundle, write_bundle
from leafcast.join.folder import joined_folder
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId

NOW_MS = SystemClock().now().wall_ms
BUNDLE = Bundle(
    tree=TreeId("t" * 26),
    path=NodePath.parse("/emea/store-9"),
    relay=False,
    parents=("nats://127.0.0.1:7422",),
    seed=new_user_nkey(b"e" * 32)[0],
    roots=Roots({KeyId("r" * 26): b"k" * 32}),
    issued_ms=NOW_MS,
    expires_ms=NOW_MS + 24 * 3_600_000,
    labels={"id": "emea-store-9"},
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("bundle") / "join.json"


def test_a_bundle_is_read_as_it_was_written_by_its_owner_only(file):
    write_bundle(file, BUNDLE)
    assert read_bundle(file) == BUNDLE
    assert file.stat().st_mode & 0o777 == 0o600
    assert BUNDLE.seed not in repr(BUNDLE)


@given(at=st.integers(0), byte=st.integers(0, 255))
def test_a_byte_that_is_another_is_noticed_or_means_nothing(file, at, byte):
    data = bytearray(BUNDLE.to_text().encode())
    data[at % len(data)] = byte
    file.write_bytes(data)
    with suppress(BundleRefused):
        assert read_bundle(file) == BUNDLE


@given(st.binary(max_size=200) | st.integers(0, len(BUNDLE.to_text()) - 2))
def test_any_other_bytes_are_refused(file, data):
    file.write_bytes(BUNDLE.to_text().encode()[:data] if isinstance(data, int) else data)
    with pytest.raises(BundleRefused):
        read_bundle(file)


def test_a_bundle_of_a_newer_form_or_none_at_all_is_named(file, tmp_path):
    form = json.loads(BUNDLE.to_text())
    file.write_text(json.dumps({**form, "format": 2}))
    with pytest.raises(BundleRefused, match="format 2"):
        read_bundle(file)
    with pytest.raises(BundleRefused, match=r"no such file; .*node add PATH -o missing`.*--bundle"):
        read_bundle(tmp_path / "missing")


def use(folder, file, bundle):
    return joined_folder(folder, file, bundle, SystemClock(), SystemDice())


def test_a_bundle_expires_until_its_node_was_let_in(file, tmp_path):
    old = replace(BUNDLE, expires_ms=NOW_MS - 3 * 3_600_000)
    with pytest.raises(BundleRefused, match="expired 3 hours ago"):
        check_expiry(file, old, NOW_MS)
    with pytest.raises(BundleRefused), use(tmp_path / "new", file, old):
        pass
    with use(tmp_path / "known", file, BUNDLE) as place:
        replace(place, admitted=True).keep()
    with use(tmp_path / "known", file, old) as again:
        assert again.home == place.home


def test_a_folder_serves_one_node_of_one_tree_and_one_process(file, tmp_path):
    folder = tmp_path / "node"
    with use(folder, file, BUNDLE), pytest.raises(DataDirUnusable), use(folder, file, BUNDLE):
        pass
    for other, reason in (
        (replace(BUNDLE, tree=TreeId("u" * 26)), "another tree"),
        (replace(BUNDLE, path=NodePath.parse("/emea/other")), "not /emea/other"),
    ):
        with pytest.raises(DataDirUnusable, match=reason), use(folder, file, other):
            pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    with (
        pytest.raises(DataDirUnusable, match="something else"),
        use(tmp_path / "full", file, BUNDLE),
    ):
        pass
