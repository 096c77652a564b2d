"""An edge that was removed ends its run; one whose parent merely does not know it goes on."""

from leafcast.join.withdrawal import REFUSED_SECONDS, Withdrawal


def look(withdrawal, now, *, destination=False, holds=False, refused=True):
    return withdrawal.look(is_destination=destination, holds=holds, is_refused=refused, now=now)


def removed():
    """It was a destination, and is told that it is none."""
    withdrawal = Withdrawal()
    assert not look(withdrawal, 0.0, destination=True, refused=False)
    return withdrawal


def test_who_is_no_destination_any_more_and_is_refused_for_a_while_was_removed():
    withdrawal = removed()
    assert not look(withdrawal, 1.0)
    assert not look(withdrawal, REFUSED_SECONDS)
    assert look(withdrawal, 1.0 + REFUSED_SECONDS)


def test_who_is_let_in_meanwhile_was_not():
    withdrawal = removed()
    assert not look(withdrawal, 1.0)
    assert not look(withdrawal, 5.0, refused=False)
    assert not look(withdrawal, 2.0 + REFUSED_SECONDS)


def test_who_is_refused_and_is_a_destination_or_holds_something_or_never_was_one_goes_on():
    late = 1000.0
    withdrawal = removed()
    for how in ({"destination": True}, {"holds": True}):
        assert not look(withdrawal, 1.0, **how)
        assert not look(withdrawal, late, **how)
    never = Withdrawal()
    assert not look(never, 1.0)
    assert not look(never, late)
