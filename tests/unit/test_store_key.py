"""A store begins with one key and opens with that alone; other starts are refused in words."""

import pytest

from relay.adapters.server.nats_config import BadServerSettings, ServerSettings, render
from relay.adapters.server.store_key import (
    CHARACTERS_MAX,
    CHECK_FILE,
    StoreKey,
    StoreKeyRefused,
    admit_key,
    read_store_key,
)
from schemas.values.identity import NodePath
from tests.nats.conftest import new_seeds

KEY, OTHER = StoreKey("k" * 40), StoreKey("o" * 40)


def test_a_store_is_opened_by_the_key_that_it_was_begun_with_alone(tmp_path):
    admit_key(tmp_path, KEY)
    admit_key(tmp_path, KEY)
    with pytest.raises(StoreKeyRefused, match="encrypted with another key; name the file"):
        admit_key(tmp_path, OTHER)
    with pytest.raises(StoreKeyRefused, match="encrypted, and there is no key; name the file"):
        admit_key(tmp_path, None)


def test_a_store_in_clear_is_left_so_until_there_is_a_key(tmp_path):
    admit_key(tmp_path, None)
    assert not list(tmp_path.iterdir())
    admit_key(tmp_path, KEY)
    with pytest.raises(StoreKeyRefused):
        admit_key(tmp_path, None)


def test_nothing_that_is_kept_or_shown_holds_the_key(tmp_path):
    admit_key(tmp_path, KEY)
    assert KEY.secret not in (tmp_path / CHECK_FILE).read_text()
    assert KEY.secret not in repr(KEY)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("short", "32 to 512 characters, not 5"),
        ("", "one line of letters"),
        ("k" * 40 + "\n" + "k" * 40, "one line"),
        ("k" * 40 + '"', "one line"),
        ("k" * (CHARACTERS_MAX + 1), "characters, not"),
        ("ü" * 40, "no line of text"),
    ],
)
def test_a_key_that_is_none_is_refused_by_its_file(tmp_path, said, why):
    file = tmp_path / "key"
    file.write_text(said, encoding="utf-8")
    with pytest.raises(StoreKeyRefused, match=why) as refused:
        read_store_key(file)
    assert str(file) in str(refused.value)
    assert "openssl rand" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreKeyRefused, match=r"No such file.*--store-key-file"):
        read_store_key(tmp_path / "none")


def test_the_configuration_names_the_variable_and_never_a_key():
    settings = ServerSettings(NodePath(), 1, 2, "/store", new_seeds().public())
    assert "cipher" not in render(settings)
    encrypted = ServerSettings(
        NodePath(), 1, 2, "/store", new_seeds().public(), store_key_variable="STORE_KEY"
    )
    assert 'cipher: "chachapoly"\n  key: $STORE_KEY\n}' in render(encrypted)
    bad = ServerSettings(
        NodePath(), 1, 2, "/store", new_seeds().public(), store_key_variable="no name"
    )
    with pytest.raises(BadServerSettings, match="environment variable"):
        render(bad)
