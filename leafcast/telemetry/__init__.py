"""What became of changes, sent to a collector as spans of OpenTelemetry; off unless told."""
