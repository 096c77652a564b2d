"""The server configuration: what depends on the node's place, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from relay.adapters.server.nats_config import (
    AccountSeeds,
    BadServerSettings,
    ParentRemote,
    ServerSettings,
    render,
)
from relay.adapters.server.nkey_pairs import BadNkey, check_public_nkey, new_user_nkey
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity


def nkey(number: int) -> tuple[str, str]:
    return new_user_nkey(bytes([number]) * 32)


SEEDS = AccountSeeds(*(nkey(number)[0] for number in range(1, 5)))
SETTINGS = ServerSettings(
    path=NodePath.parse("/emea/s1"),
    port=20001,
    leaf_port=20002,
    store_dir=Path("/var/lib/leafcast/jetstream"),
    nkeys=SEEDS.public(),
    parent=ParentRemote(("nats://127.0.0.1:20003",), nkey(5)[0]),
    children={"rack-7": nkey(6)[1]},
)


@pytest.mark.parametrize(
    ("path", "subject", "position"),
    [
        ("/", "lc.*._stat.*", 2),
        ("/emea", "lc.emea.*._stat.*", 3),
        ("/a/b/c", "lc.a.b.c.*._stat.*", 5),
    ],
)
def test_the_childs_name_is_checked_where_it_stands_at_this_depth(path, subject, position):
    text = render(replace(SETTINGS, path=NodePath.parse(path)))
    assert f'{{ service: "{subject}", account_token_position: {position} }}' in text
    assert subject.split(".")[position - 1] == "*"


def test_every_placeholder_is_filled_and_every_bracket_closed():
    text = render(SETTINGS)
    assert "${" not in text
    assert 'server_name: "lc_emea_s1"' in text
    for opening, closing in ("{}", "[]"):
        assert text.count(opening) == text.count(closing)


def test_equal_settings_give_equal_text_in_whatever_order_children_came():
    first, second = {"a": nkey(7)[1], "b": nkey(8)[1]}, {"b": nkey(8)[1], "a": nkey(7)[1]}
    assert render(replace(SETTINGS, children=first)) == render(replace(SETTINGS, children=second))


def test_no_secret_shows_in_a_representation():
    shown = repr(SEEDS) + repr(SETTINGS)
    assert not any(seed in shown for seed in (SEEDS.relay, SEEDS.system, SETTINGS.parent.seed))


@pytest.mark.parametrize(
    ("named", "dialled"),
    [
        ("wss://c.example/leaf", "wss://c.example:443/leaf"),
        ("wss://[2001:db8::1]/leaf", "wss://[2001:db8::1]:443/leaf"),
        ("wss://c.example:8443/leaf", "wss://c.example:8443/leaf"),
        ("ws://localhost/leaf", "ws://localhost:80/leaf"),
        ("wss://c.example/", "wss://c.example:443"),
        ("wss://c.example:8443/leaf/", "wss://c.example:8443/leaf"),
        ("tls://c.example", "tls://c.example"),
    ],
)
def test_a_websocket_without_a_port_goes_where_the_web_is(named, dialled):
    link = ParentRemote((named,), nkey(5)[0])
    assert f'urls: ["{dialled}"]' in render(replace(SETTINGS, parent=link))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("u:p@", 'username: "u", password: "p"'),
        ("u:p%22x@", r'username: "u", password: "p\"x"'),
        (r"u\v:p%5c%22@", r'username: "u\\v", password: "p\\\""'),
        ("u%40d:p%3a%7d@", 'username: "u@d", password: "p:}"'),
    ],
)
def test_any_name_and_password_of_a_proxy_are_written_as_they_are(said, written):
    link = ParentRemote(("wss://c.example",), nkey(5)[0], proxy=f"http://{said}proxy:3128")
    shown = render(replace(SETTINGS, parent=link))
    assert f'proxy: {{ url: "http://proxy:3128", {written} }}' in shown


@pytest.mark.parametrize("said", ["u:p%0a@proxy", "u%00:p@proxy", 'u:p@pro"xy'])
def test_what_a_file_cannot_say_of_a_proxy_is_refused_without_its_password(said):
    link = ParentRemote(("wss://c.example",), nkey(5)[0], proxy=f"http://{said}:3128")
    with pytest.raises(BadServerSettings, match=r"it has a (control|quotation)") as refused:
        render(replace(SETTINGS, parent=link))
    assert "u:" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"children": {"RELAY": nkey(7)[1]}}, BadIdentity),
        ({"children": {"a.b": nkey(7)[1]}}, BadIdentity),
        ({"children": {"a": "U" + "A" * 55}}, BadNkey),
        ({"children": {"a": nkey(7)[1], "b": nkey(7)[1]}}, BadServerSettings),
        ({"children": {"a": SETTINGS.nkeys.system}}, BadServerSettings),
        ({"store_dir": Path('/srv/"; evil')}, BadServerSettings),
        ({"parent": ParentRemote(('nats://x", account: RELAY',), nkey(5)[0])}, BadServerSettings),
        ({"parent": ParentRemote(("nats://x",), nkey(5)[1])}, BadNkey),
        ({"parent": ParentRemote(("wss://x:port",), nkey(5)[0])}, BadServerSettings),
        (
            {"parent": ParentRemote(("tls://x",), nkey(5)[0], proxy="http://y:3128")},
            BadServerSettings,
        ),
    ],
)
def test_what_would_break_or_widen_the_file_is_refused(change, refusal):
    with pytest.raises(refusal):
        render(replace(SETTINGS, **change))


def test_a_key_pair_follows_from_its_entropy():
    assert nkey(9) == nkey(9)
    assert nkey(9) != nkey(10)
    seed, public = nkey(9)
    assert seed.startswith("SU")
    assert check_public_nkey(public, "anyone") == public
