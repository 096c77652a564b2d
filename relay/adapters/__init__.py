"""One module per outside thing, and the only importer of its library."""

from relay.adapters.jetstream import cancellation, websocket_transport

cancellation.install()
websocket_transport.leave_out()
