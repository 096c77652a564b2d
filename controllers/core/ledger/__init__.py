"""What is issued: records before and after, snapshots, and which removals pass."""
