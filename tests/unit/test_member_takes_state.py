"""A member that becomes active goes by the state of its node, its server included."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from nacl.public import PrivateKey

from leafcast.join.joined_node import AUTHORITIES_FILE
from leafcast.join.kept_grant import write_grant
from leafcast.members.member import Member, _State
from leafcast.members.sealed_state import sealed
from leafcast.members.state_files import StateFiles
from relay.adapters.clock import SystemClock
from tests.unit.test_member_addresses import DICE, granted_relay


class Read(Exception):
    """The server read its files; what they said."""


class ReadingServer:
    """Ends the run as it reads whom to believe at the parent."""

    def __init__(self, file):
        self.file, self.linked = file, None

    async def become(self, neighbours):
        self.linked = neighbours.parent

    async def reload(self):
        raise Read(self.file.read_text(encoding="utf-8"))


async def test_who_takes_over_believes_at_the_parent_whom_the_former_one_did(tmp_path):
    clock, other = SystemClock(), tmp_path / "former"
    other.mkdir()
    relay, grant = granted_relay(tmp_path / "here", clock)
    assert relay.neighbours().parent is not None
    newer = replace(grant, authorities="NEWER")
    write_grant(other / "bundle.json", newer)
    public = {"m1": bytes(PrivateKey(bytes(32)).public_key)}
    text = (other / "bundle.json").read_bytes()
    kept = {"bundle.json": sealed("bundle.json", text, public, DICE)}
    stream = SimpleNamespace(make=AsyncMock(), take=AsyncMock(return_value=kept))
    keeper = SimpleNamespace(lease=SimpleNamespace(run="run"), confirm=AsyncMock())
    server = ReadingServer(relay.folder / AUTHORITIES_FILE)
    member = Member(relay._settings, relay, clock, DICE)
    state = _State(stream, StateFiles(relay.folder, relay.state))
    led = SimpleNamespace(api_once=AsyncMock())
    with pytest.raises(Read, match="NEWER"):
        await member._run_node(SimpleNamespace(server=server, connection=led), keeper, state)
    assert server.linked == relay.neighbours().parent
