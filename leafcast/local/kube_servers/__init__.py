"""Real Kubernetes API servers on this machine: any number of them on one etcd."""
