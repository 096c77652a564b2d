"""What is signed and sent down: records, snapshots, roots, windows, asks."""
