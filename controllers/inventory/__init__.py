"""The reconcilers of inventory spaces, and of what moves between destinations."""
