"""What is said: values that every part of Leafcast shares, and nothing that does I/O.

A module belongs here if a relay, a controller and a test of another program could all import it to
read or write the same bytes: API kinds, wire records, identities, the subject grammar, the codec.
"""
