"""What the daemon answers, a module for each group of verbs."""
