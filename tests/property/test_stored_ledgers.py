"""Whatever lies in the stream of a centre's ledger, the centre starts."""

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.start import read_stored_ledger
from relay.core.instant import Instant
from schemas.records.records import encode_payload
from schemas.records.signed_records import read_stored
from schemas.records.signing import KINDS, Envelope
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY
from tests.unit.test_ledger_lives import SIGNER, Centre, location, node, profile

NOW = Instant(0.0, 0)
RECORDS = [location("l"), profile("s", "/a"), node("/a")]
WHOLE = [
    encode_payload(Draft("node", one).stamped(5, term))
    for one in RECORDS
    for term in ("0" * 16, "")
]
payloads = st.sampled_from(WHOLE) | st.binary(max_size=40)
bodies = st.none() | st.binary(max_size=10)
keys = st.sampled_from([KEYS_KEY, *(one.source.key for one in RECORDS)])
envelopes = st.builds(
    lambda kind, payload, body: Envelope(kind, SIGNER.key_id, payload, b"", body),
    st.sampled_from(sorted(KINDS)),
    payloads,
    bodies,
)


def snapshot():
    centre = Centre()
    centre.issue(*RECORDS)
    centre.sign()
    return centre.own[SNAPSHOT_KEY].payload


@given(st.dictionaries(keys, envelopes), st.none() | st.just(snapshot()) | st.binary(max_size=40))
def test_whatever_lies_in_the_ledgers_stream_the_centre_starts(store, last):
    if last is not None:
        store[SNAPSHOT_KEY] = Envelope("snapshot", SIGNER.key_id, last, b"")
    reading = read_stored_ledger(read_stored(store))
    try:
        next(reading)
        reading.send({})
    except StopIteration as end:
        issuer = end.value.begin("0" * 16, SIGNER, NOW)
    issuer.assert_invariants()
    # What is there and is no record of this ledger is erased with the first snapshot.
    kept = issuer.ledger.records.keys() | {SNAPSHOT_KEY}
    assert set(issuer.sign_snapshot(NOW).dropped) == store.keys() - kept
