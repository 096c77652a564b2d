"""What a process shows to Prometheus: which figures there are, and how they are written."""
