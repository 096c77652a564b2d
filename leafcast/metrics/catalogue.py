"""All figures that a process shows: docs/operations/metrics.md lists them in this order.

A node's figures name the node: a process may run several. No label names a destination, and none
at the centre a node: what is there grows with placements.
"""

from __future__ import annotations

from leafcast.metrics.reading import Metric, MetricKind

_COUNTER, _GAUGE, _HISTOGRAM, _INFO = (
    MetricKind.COUNTER,
    MetricKind.GAUGE,
    MetricKind.HISTOGRAM,
    MetricKind.INFO,
)
_NODE = ("node",)

# Of a process.

BUILD = Metric(
    "leafcast_build_info",
    _INFO,
    "The release of Leafcast that runs, and the Python under it.",
    ("version", "python"),
)
CHECK = Metric(
    "leafcast_check",
    _GAUGE,
    "1 if a check of /readyz holds, else 0.",
    ("check",),
)
MEMBER_ROLE = Metric(
    "leafcast_member_role",
    _GAUGE,
    "1 for what this process is to its node: active, standby, or none if it hears of no active "
    "one.",
    ("role",),
)
OF_PROCESSES = (BUILD, CHECK, MEMBER_ROLE)

# Of every node.

NODE = Metric(
    "leafcast_node_info",
    _INFO,
    "A node that runs in this process: its path, and whether it is centre, relay or edge.",
    ("node", "role"),
)
NODE_READY = Metric(
    "leafcast_node_ready",
    _GAUGE,
    "1 if the node runs, is in session with its parent and has read its mailbox, else 0.",
    _NODE,
)
VIEW_STALE = Metric(
    "leafcast_view_stale",
    _GAUGE,
    "1 if the parent has shown no newer snapshot for 20 minutes, else 0.",
    _NODE,
)
SNAPSHOT_GENERATION = Metric(
    "leafcast_snapshot_generation",
    _GAUGE,
    "The generation of the snapshot that the node reached.",
    _NODE,
)
SNAPSHOT_TIME = Metric(
    "leafcast_snapshot_timestamp_seconds",
    _GAUGE,
    "When that snapshot was signed, by the centre's clock, in seconds since 1970.",
    _NODE,
)
PLACEMENTS_HELD = Metric(
    "leafcast_node_placements",
    _GAUGE,
    "How many placements the node holds records of.",
    _NODE,
)
RECORDS_OUTDATED = Metric(
    "leafcast_records_outdated",
    _GAUGE,
    "How many records are in force here though a newer version is, which the parent does not show.",
    _NODE,
)
RECORDS_ORPHANED = Metric(
    "leafcast_records_orphaned",
    _GAUGE,
    "How many records are in force here whose term the centre does not know.",
    _NODE,
)
RECORDS_REFUSED = Metric(
    "leafcast_records_refused_total",
    _COUNTER,
    "Records from the parent that were not acted on, by why.",
    ("node", "reason"),
)
NOTES = Metric(
    "leafcast_notes_total",
    _COUNTER,
    "What the node noted for people, by the reasons that `leafcast events` shows.",
    ("node", "reason"),
)
CHILDREN = Metric(
    "leafcast_children",
    _GAUGE,
    "How many children the node has, by their state as `leafcast node list` says it.",
    ("node", "state"),
)
LAG = Metric(
    "leafcast_lag_messages",
    _GAUGE,
    "Messages in the mailboxes of the node's children that those have not answered, all together.",
    _NODE,
)
MAIL_MESSAGES = Metric(
    "leafcast_mail_messages_total",
    _COUNTER,
    "Messages written into children's mailboxes; snapshots count apart.",
    _NODE,
)
MAIL_BYTES = Metric(
    "leafcast_mail_bytes_total",
    _COUNTER,
    "Bytes of the messages written into children's mailboxes, snapshots included.",
    _NODE,
)
SNAPSHOTS_WRITTEN = Metric(
    "leafcast_snapshots_written_total",
    _COUNTER,
    "Snapshots written into children's mailboxes.",
    _NODE,
)
BLOBS_KEPT = Metric(
    "leafcast_blobs_kept_total",
    _COUNTER,
    "Blobs of content that came and were kept.",
    _NODE,
)
REPORTS_REFUSED = Metric(
    "leafcast_reports_refused_total",
    _COUNTER,
    "Messages of children that were refused.",
    _NODE,
)
PROPAGATION = Metric(
    "leafcast_propagation_seconds",
    _HISTOGRAM,
    "From when the centre signed a change of a placement until it came so far; tier 0 is the "
    "centre.",
    ("node", "stage", "tier"),
)
DISK_FREE = Metric(
    "leafcast_disk_free_bytes",
    _GAUGE,
    "Room on the disk of the node's folder.",
    _NODE,
)
OF_NODES = (
    NODE,
    NODE_READY,
    VIEW_STALE,
    SNAPSHOT_GENERATION,
    SNAPSHOT_TIME,
    PLACEMENTS_HELD,
    RECORDS_OUTDATED,
    RECORDS_ORPHANED,
    RECORDS_REFUSED,
    NOTES,
    CHILDREN,
    LAG,
    MAIL_MESSAGES,
    MAIL_BYTES,
    SNAPSHOTS_WRITTEN,
    BLOBS_KEPT,
    REPORTS_REFUSED,
    PROPAGATION,
    DISK_FREE,
)

# Of edges.

OBJECTS = Metric(
    "leafcast_objects",
    _GAUGE,
    "Objects in the edge's cluster: wanted by placements, applied (namespaces that others need "
    "included), and kept though nothing wants them.",
    ("node", "state"),
)
APPLY_OBJECTS = Metric(
    "leafcast_apply_objects_total",
    _COUNTER,
    "Attempts to change an object in the edge's cluster, by how they ended.",
    ("node", "result"),
)
MAINTENANCE = Metric(
    "leafcast_maintenance",
    _GAUGE,
    "1 while a person works at the edge and nothing is changed there, else 0.",
    _NODE,
)
OF_EDGES = (OBJECTS, APPLY_OBJECTS, MAINTENANCE)

# Of a node's nats-server.

SERVER_UP = Metric(
    "leafcast_nats_up",
    _GAUGE,
    "1 if the node's nats-server told its figures, else 0.",
    _NODE,
)
SERVER = Metric(
    "leafcast_nats_info",
    _INFO,
    "The version of the node's nats-server.",
    ("node", "version"),
)
SERVER_STARTS = Metric(
    "leafcast_nats_starts_total",
    _COUNTER,
    "How often a nats-server of the node's own was started; more than 1: it ended by itself.",
    _NODE,
)
CONNECTIONS = Metric(
    "leafcast_nats_connections",
    _GAUGE,
    "Clients that are connected to the nats-server.",
    _NODE,
)
LEAF_LINKS = Metric(
    "leafcast_nats_leaf_links",
    _GAUGE,
    "Leaf links of the nats-server: to its parent and to its children.",
    _NODE,
)
MESSAGES = Metric(
    "leafcast_nats_messages_total",
    _COUNTER,
    "Messages that passed the nats-server, by direction (in, out).",
    ("node", "direction"),
)
MESSAGE_BYTES = Metric(
    "leafcast_nats_message_bytes_total",
    _COUNTER,
    "Bytes of the messages that passed the nats-server, by direction (in, out).",
    ("node", "direction"),
)
SLOW_CONSUMERS = Metric(
    "leafcast_nats_slow_consumers_total",
    _COUNTER,
    "Connections that the nats-server cut because they did not read.",
    _NODE,
)
SERVER_MEMORY = Metric(
    "leafcast_nats_memory_bytes",
    _GAUGE,
    "Memory of the nats-server's process.",
    _NODE,
)
SERVER_PROCESSOR = Metric(
    "leafcast_nats_processor_ratio",
    _GAUGE,
    "How much of one processor the nats-server uses now.",
    _NODE,
)
STREAMS = Metric(
    "leafcast_nats_streams",
    _GAUGE,
    "Streams of the nats-server.",
    _NODE,
)
CONSUMERS = Metric(
    "leafcast_nats_consumers",
    _GAUGE,
    "Consumers of its streams.",
    _NODE,
)
STORED_MESSAGES = Metric(
    "leafcast_nats_stored_messages",
    _GAUGE,
    "Messages in its streams.",
    _NODE,
)
STORED_BYTES = Metric(
    "leafcast_nats_stored_bytes",
    _GAUGE,
    "Bytes in its streams.",
    _NODE,
)
OF_SERVERS = (
    SERVER_UP,
    SERVER,
    SERVER_STARTS,
    CONNECTIONS,
    LEAF_LINKS,
    MESSAGES,
    MESSAGE_BYTES,
    SLOW_CONSUMERS,
    SERVER_MEMORY,
    SERVER_PROCESSOR,
    STREAMS,
    CONSUMERS,
    STORED_MESSAGES,
    STORED_BYTES,
)

# Of the centre.

_PLACEMENT, _ROLLOUT = ("space", "placement"), ("space", "rollout")
PLACEMENTS = Metric(
    "leafcast_placements",
    _GAUGE,
    "How many placements a workload description space has; the figures below show up to 2,000.",
    ("space",),
)
DESTINATIONS = Metric(
    "leafcast_placement_destinations",
    _GAUGE,
    "Destinations that a placement is meant for, by what became of it there; each counts once.",
    (*_PLACEMENT, "state"),
)
HEALTHY = Metric(
    "leafcast_placement_healthy_destinations",
    _GAUGE,
    "Destinations at which all objects of a placement work.",
    _PLACEMENT,
)
CONDITION = Metric(
    "leafcast_placement_status_condition",
    _GAUGE,
    "1 for the status (true, false, unknown) that a condition of a placement has, else 0.",
    (*_PLACEMENT, "type", "status"),
)
HELD = Metric(
    "leafcast_placement_holds",
    _GAUGE,
    "How much keeps the newest content of a placement from destinations, by reason.",
    (*_PLACEMENT, "reason"),
)
REPAIRS = Metric(
    "leafcast_placement_repairs",
    _GAUGE,
    "How often copies that a placement has now were put right, since each of them was made.",
    _PLACEMENT,
)
COMPLETE = Metric(
    "leafcast_report_complete_ratio",
    _GAUGE,
    "How many of the placements are counted exactly: every report that bears on them is in.",
    ("space",),
)
ROLLOUT_WAVE = Metric(
    "leafcast_rollout_wave",
    _GAUGE,
    "The number of the wave that is under way, from 1; 0 while none is.",
    _ROLLOUT,
)
ROLLOUT_PHASE = Metric(
    "leafcast_rollout_phase",
    _GAUGE,
    "1 for what the Rollout does now.",
    (*_ROLLOUT, "phase"),
)
# As client-go names them.
_QUEUE = ("name",)
QUEUE_DEPTH = Metric(
    "workqueue_depth",
    _GAUGE,
    "How many keys wait in a work queue of the centre's controllers.",
    _QUEUE,
)
QUEUE_ADDS = Metric(
    "workqueue_adds_total",
    _COUNTER,
    "Keys added that did not wait there already.",
    _QUEUE,
)
QUEUE_RETRIES = Metric(
    "workqueue_retries_total",
    _COUNTER,
    "Keys that failed and were to be tried again.",
    _QUEUE,
)
QUEUE_WAITS = Metric(
    "workqueue_queue_duration_seconds",
    _HISTOGRAM,
    "How long keys waited before they were taken.",
    _QUEUE,
)
QUEUE_WORKS = Metric(
    "workqueue_work_duration_seconds",
    _HISTOGRAM,
    "How long it took to reconcile what was taken at once.",
    _QUEUE,
)
QUEUE_WORKING = Metric(
    "workqueue_unfinished_work_seconds",
    _GAUGE,
    "For how long what was taken last has been reconciled; 0 while nothing is.",
    _QUEUE,
)
OF_THE_CENTRE = (
    PLACEMENTS,
    DESTINATIONS,
    HEALTHY,
    CONDITION,
    HELD,
    REPAIRS,
    COMPLETE,
    ROLLOUT_WAVE,
    ROLLOUT_PHASE,
    QUEUE_DEPTH,
    QUEUE_ADDS,
    QUEUE_RETRIES,
    QUEUE_WAITS,
    QUEUE_WORKS,
    QUEUE_WORKING,
)

SECTIONS = {
    "A process": OF_PROCESSES,
    "A node": OF_NODES,
    "An edge": OF_EDGES,
    "A node's nats-server": OF_SERVERS,
    "The centre": OF_THE_CENTRE,
}
"""All metrics, by what they are of."""
