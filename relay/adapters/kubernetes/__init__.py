"""A space on any Kubernetes API server: raw JSON over HTTP, nothing of the library's models."""
