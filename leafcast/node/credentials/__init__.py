"""Keys, certificates and authorities of the nodes of this machine, as files."""
