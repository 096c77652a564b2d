"""One module per outside thing, and the only importer of its library."""

from relay.adapters.cancellation import install

install()
