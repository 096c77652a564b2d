"""One module per outside thing, and the only importer of its library."""

from relay.adapters.installed import METADATA, Versions
from relay.adapters.jetstream import cancellation
from schemas.lean_import import load_without

cancellation.install()
# For its transport over WebSockets, which no link here uses: 11 MB and 0.1 s of each process.
load_without("nats", "aiohttp")
# It only says its version.
load_without("nats", METADATA, Versions())
