"""Certificates: the only importer of `cryptography`. Whoever comes here brings the time along."""
