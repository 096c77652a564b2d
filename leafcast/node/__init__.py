"""One node, as it runs on every machine: its server, relay, credentials and cluster."""
