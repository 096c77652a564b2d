"""What a workload description space holds, and what of it placements want."""
