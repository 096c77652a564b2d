"""One module per outside thing, and the only importer of its library."""

from relay.adapters.installed import METADATA, Versions
from relay.adapters.jetstream import cancellation, websocket_transport
from schemas.lean_import import load_without

cancellation.install()
websocket_transport.leave_out()
# It only says its version.
load_without("nats", METADATA, Versions())
