"""In a cluster what only reads is asked again where nobody answers, and nothing else is."""

import nats.errors
import pytest
from nats.aio.client import ServerVersion

from relay.adapters.jetstream.backpressure_client import READ_SECONDS, patient_jetstream

OWN_SECONDS = 5
"""For so long the library waits."""


class Unanswering:
    """A client nobody answers; it notes how long each request was waited for."""

    connected_server_version = ServerVersion("2.15.1")

    def __init__(self):
        self.waited = []

    async def request(self, subject, payload=b"", timeout=None, headers=None):
        self.waited.append(timeout)
        raise nats.errors.TimeoutError


async def waited(act, *, in_cluster):
    client = Unanswering()
    with pytest.raises(TimeoutError):
        await act(patient_jetstream(client, "lc", in_cluster=in_cluster))
    return client.waited


@pytest.mark.parametrize(
    "read",
    [
        lambda jetstream: jetstream.stream_info("KV_a"),
        lambda jetstream: jetstream.get_last_msg("KV_a", "$KV.a.k"),
        lambda jetstream: jetstream.add_consumer("KV_a"),
    ],
)
async def test_a_read_is_asked_again_in_a_cluster_alone(read):
    assert await waited(read, in_cluster=True) == [*READ_SECONDS, OWN_SECONDS]
    assert await waited(read, in_cluster=False) == [OWN_SECONDS]


@pytest.mark.parametrize(
    "change",
    [
        lambda jetstream: jetstream.publish("$KV.a.k", b""),
        lambda jetstream: jetstream.purge_stream("KV_a"),
        lambda jetstream: jetstream.delete_stream("KV_a"),
    ],
)
async def test_what_changes_something_is_asked_once(change):
    assert await waited(change, in_cluster=True) == [OWN_SECONDS]
