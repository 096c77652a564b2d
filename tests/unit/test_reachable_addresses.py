"""What a node is given says so if no other machine can join with it."""

import pytest

from leafcast.cli.node_tokens import only_here, tell_if_only_here


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nats://127.0.0.1:20718", "nats://127.0.0.1:20718"),
        ("tls://localhost:7422", "tls://localhost:7422"),
        ("wss://[::1]/leaf", "wss://[::1]/leaf"),
        ("tls://127.0.0.1:7422,tls://centre.example:7422", ""),
        ("tls://127.example:7422", ""),
        ("tls://10.0.0.1:7422", ""),
        ("", ""),
    ],
)
def test_an_address_that_leads_to_this_machine_alone_is_found(text, found):
    assert only_here(text) == found


def test_it_is_said_of_a_token_with_what_to_do(capsys):
    tell_if_only_here("nats://127.0.0.1:1")
    said = capsys.readouterr().err
    assert "only this machine reaches nats://127.0.0.1:1;" in said
    assert "leafcast up --listen NAME" in said
    tell_if_only_here("tls://centre.example:7422")
    assert capsys.readouterr().err == ""
