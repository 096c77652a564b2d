"""What a syncer says of objects, and when it says it again."""

from relay.syncer.observed import Observations
from schemas.objects.objects import ObjectKey

KEY = ObjectKey("", "configmaps", "default", "a")


def test_the_last_word_on_an_object_is_said_also_if_it_was_gone_while_it_was_wanted():
    observed = Observations()
    assert observed.news(KEY, "", "", "") is not None
    assert observed.news(KEY, "", "", "") is None
    assert not observed.forget_object(KEY, "").present
