"""What a command that may be copied says of an object: names, and nothing else."""

import pytest

from leafcast.ui.described import described
from schemas.objects.objects import ObjectKey

WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (WEB, "deployments.apps web -n shop"),
        (ObjectKey("", "namespaces", "", "shop"), "namespaces shop"),
        (ObjectKey("apps", "deployments", "shop", "web; rm -rf ~"), ""),
        (ObjectKey("apps", "deployments", "$(id)", "web"), ""),
        (ObjectKey("apps", "deployments", "shop", "web\nid"), ""),
        (ObjectKey("", "pods", "shop", "-oyaml"), ""),
        (ObjectKey("`id`", "pods", "shop", "web"), ""),
    ],
)
def test_no_word_that_an_edge_chose_comes_into_a_command_unless_it_is_a_name(key, said):
    assert described(key) == said
