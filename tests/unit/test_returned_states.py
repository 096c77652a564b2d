"""What one copy returns of its state is for the centre, and of this copy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.content.sealing import SealingKey, placement_key
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ObjectResult
from schemas.reports.returned_states import opened_state, sealed_state
from schemas.values import codec
from schemas.values.identity import MailKey, TreeId
from schemas.values.refusals import BlobRefused, RecordRefused
from schemas.values.wire import replace
from tests.unit.test_wire_golden import KEY as PLACEMENT

TREE = TreeId("t" * 26)
OBJECT = ObjectKey("apps", "deployments", "shop", "web")
STATE = codec.pack({"replicas": 3, "note": "what only the centre may read"})
RESULT = ObjectResult(OBJECT, 1, "inv-mb-u", STATE)


def key(count=0, tree=TREE):
    return SealingKey(tree, placement_key(b"m" * 32, MailKey(PLACEMENT), count))


def test_a_returned_state_is_for_the_centre_alone():
    sealed = sealed_state(RESULT, key())
    assert sealed == sealed_state(RESULT, key()), "equal states are reported once"
    assert b"only the centre" not in sealed.status
    assert opened_state(sealed, [key()]) == RESULT
    for strange in (key(1), key(tree=TreeId("u" * 26))):
        with pytest.raises(BlobRefused):
            opened_state(sealed, [strange])


@pytest.mark.parametrize(
    "change",
    [
        {"key": ObjectKey("apps", "deployments", "shop", "db")},
        {"destination": "inv-mb-v"},
        {"status": STATE},
        {"status": b""},
        {"status": b"\xc1"},
    ],
)
def test_nobody_on_the_way_can_say_another_state_in_its_place(change):
    with pytest.raises(BlobRefused):
        opened_state(replace(sealed_state(RESULT, key()), **change), [key()])


def test_a_state_under_a_former_key_is_still_read():
    assert opened_state(sealed_state(RESULT, key(0)), [key(1), key(0)]) == RESULT


def test_what_is_only_counted_and_what_is_in_clear_stays_as_it_is():
    counted = ObjectResult(OBJECT, 7)
    assert sealed_state(counted, key()) == counted
    assert opened_state(counted, [key()]) == counted
    assert opened_state(RESULT, []) == RESULT


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data):
    for status in (data, b"\xc1" + data, b"\xc1" + key().id + data):
        with pytest.raises((BlobRefused, RecordRefused)):
            opened_state(replace(RESULT, status=status), [key()])
