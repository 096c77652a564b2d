"""The reconcilers of a workload description space; what they decide is in `controllers.core`."""
