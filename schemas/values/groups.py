"""The groups and versions of our API kinds, for those who read no object of them.

`schemas.api` builds a model of each kind, which takes 0.1 s.
"""

from __future__ import annotations

GROUP, VERSION = "edge.kubestellar.io", "v2alpha1"
CONTROL_GROUP, CONTROL_VERSION = "control.kubestellar.io", "v1alpha1"
CONTROL_GROUPS = frozenset({CONTROL_GROUP, GROUP})
"""Of objects that say what becomes of others, and go nowhere themselves."""
API_PLACEMENT = "edge.kubestellar.io/EdgePlacement"
API_POLICY = "control.kubestellar.io/BindingPolicy"
DENATURED_GROUP = "leafcast.io"
ROLLOUTS = (DENATURED_GROUP, "rollouts")
RELEASES = (DENATURED_GROUP, "leafcastreleases")
PATH_ANNOTATION = "leafcast.io/path"
"""Where in the tree a SyncTarget hangs."""
NOTE = "leafcast.io/note"
"""Of an object that we make: what it leaves out, and where that is told."""
SYSTEM_NAMESPACE = "leafcast-system"
"""On an API server: where our Leases and accounts are."""
PROPERTIES_NAMESPACE = "customization-properties"
"""In an inventory space: the ConfigMap of the same name as a SyncTarget has its properties."""
AS_OF_ANNOTATION, EDGE_ANNOTATION = "leafcast.io/as-of", "leafcast.io/edge"
"""On what is shown of a copy: a moment at which the edge held it just so; the edge's path."""
