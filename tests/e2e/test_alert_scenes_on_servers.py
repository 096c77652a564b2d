"""Real servers that hang, are killed and are down show the series that are kept of them."""

import pytest

from tests.alert_scenes.on_servers import SCENES, scraped
from tests.alert_scenes.series import recorded

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]


def test_a_scene_on_servers_that_is_played_now_shows_the_series_that_are_kept(tmp_path):
    anew = scraped(tmp_path)
    assert {*anew} == {*SCENES}
    for scene, series in anew.items():
        assert [name for name, _ in series.sorted()] == sorted(recorded(scene)["series"])
