"""What people say of places finds room in a message, or is refused where it is said."""

import pytest

from controllers.core.rollout.layers import CONTENTS_MAX
from relay.adapters.jetstream.streams import MAIL_MAX_BYTES
from schemas.api.parsing import InvalidObject, parse_wish
from schemas.api.rollout_spec import WAVES_MAX
from schemas.api.shared import DESCRIPTION_MAX_BYTES, SELECTORS_MAX_BYTES
from schemas.records.properties import PROPERTIES_MAX_BYTES
from schemas.records.records import DEPENDENCIES_MAX, WINDOWS_MAX
from schemas.records.windows import CRON_MAX_CHARACTERS, WINDOW_MAX_SECONDS
from schemas.values.codec import pack
from tests.unit.centre_world import location, ours, placement, target

VALUES_OF_ONE, VALUE_CHARACTERS = 200, 60


def selectors(size):
    """Selectors of about so many bytes."""
    values = [f"{at:0{VALUE_CHARACTERS}d}" for at in range(size // (VALUE_CHARACTERS + 1))]
    parts = [values[at : at + VALUES_OF_ONE] for at in range(0, len(values), VALUES_OF_ONE)]
    return [
        {"matchExpressions": [{"key": "site", "operator": "In", "values": part}]} for part in parts
    ]


def policy(size):
    spec = {"clusterSelectors": selectors(size), "downsync": []}
    form = ours("BindingPolicy", "shop", spec)
    return {**form, "apiVersion": "control.kubestellar.io/v1alpha1"}


def one_selector(size):
    """All of it in one."""
    listed = [it for each in selectors(size) for it in each["matchExpressions"]]
    return {"matchExpressions": listed}


def rollout(size):
    wave = {"name": "first", "selector": one_selector(size)}
    spec = {"placement": {"name": "shop"}, "waves": [wave, {"name": "rest", "percent": 100}]}
    form = ours("Rollout", "shop", spec)
    return {**form, "apiVersion": "leafcast.io/v1alpha1"}


def described(size):
    """Labels of about so many bytes."""
    each = len("label-00000") + VALUE_CHARACTERS + 2
    return {f"label-{at:05}": "v" * VALUE_CHARACTERS for at in range(size // each)}


SELECTING = {
    "EdgePlacement": lambda size: placement(selectors=selectors(size)),
    "BindingPolicy": policy,
    "Location": lambda size: location("some", one_selector(size)),
    "Rollout": rollout,
}
DESCRIBED = {
    "SyncTarget": lambda size: target("some", "/some", **described(size)),
    "Location": lambda size: location("some", **described(size)),
}
KINDS = [
    *((kind, make, SELECTORS_MAX_BYTES) for kind, make in SELECTING.items()),
    *((kind, make, DESCRIPTION_MAX_BYTES) for kind, make in DESCRIBED.items()),
]


@pytest.mark.parametrize(("kind", "make", "most"), KINDS)
def test_what_is_too_long_to_be_sent_is_refused_with_the_bound(kind, make, most):
    assert parse_wish(make(most - 1_000)).kind == kind
    with pytest.raises(InvalidObject) as refused:
        parse_wish(make(most + 1_000))
    assert f"bytes, at most {most} are sent" in str(refused.value)


def test_the_longest_that_is_taken_finds_room_in_one_message():
    whole = selectors(SELECTORS_MAX_BYTES)
    said = len(pack([[["site", "In", it["matchExpressions"][0]["values"]]] for it in whole]))
    window = len(pack(["*" * CRON_MAX_CHARACTERS, WINDOW_MAX_SECONDS, "z" * 40]))
    windows = window * WINDOWS_MAX * WAVES_MAX * CONTENTS_MAX
    # The placement's own, of those that it waits for, and of the revisions that are out.
    delta = said * (1 + DEPENDENCIES_MAX + CONTENTS_MAX) + windows
    assert delta < MAIL_MAX_BYTES * 9 // 10
    place = DESCRIPTION_MAX_BYTES + PROPERTIES_MAX_BYTES + SELECTORS_MAX_BYTES
    assert place < MAIL_MAX_BYTES // 2
