"""What an embedded space keeps, and what not, over the death of its nats-server."""

import nats
import pytest

from relay.adapters.spaces import bucket
from tests.awaiting import eventually
from tests.contract.spaces import config_map, embedded, running_server
from tests.contract.test_space import SETTINGS

pytestmark = pytest.mark.nats


async def messages(url):
    """The subjects under which the bucket keeps objects, and how many messages of each."""
    connection = await nats.connect(url)
    try:
        info = await connection.jetstream().stream_info("KV_kept", "$KV.kept.o.>")
        return info.state.subjects or {}
    finally:
        await connection.close()


@pytest.mark.parametrize("made_before", [False, True], ids=["made-now", "made-before"])
async def test_what_was_deleted_stays_deleted_however_its_server_ends(
    tmp_path, clock, monkeypatch, made_before
):
    """Also when nothing of the deletion is kept any more."""
    monkeypatch.setattr(bucket, "DELETIONS_KEPT_SECONDS", 1)
    with running_server(tmp_path, killed=True) as url:
        if made_before:
            await make_as_before(url)
        async with embedded(url, clock, "kept") as space:
            for name in ("settings", "other"):
                for value in "123":
                    await space.apply(config_map(name, a=value), "me")
            assert set((await messages(url)).values()) == {1}
            await space.delete(SETTINGS)

            async def forgotten():
                return len(await messages(url)) == 2

            await eventually(forgotten)
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            listed = (await space.list("", "configmaps")).objects
            left = {obj["metadata"]["name"]: obj["data"] for obj in listed}
            assert left == {"other": {"a": "3"}}


async def make_as_before(url):
    """A bucket whose entries are bounded by a limit."""
    connection = await nats.connect(url)
    try:
        await connection.jetstream().add_stream(
            name="KV_kept",
            subjects=["$KV.kept.>"],
            max_msgs_per_subject=1,
            discard="new",
            allow_rollup_hdrs=True,
            deny_delete=True,
            allow_direct=True,
            allow_msg_ttl=True,
        )
    finally:
        await connection.close()
