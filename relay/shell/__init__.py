"""What runs a node's core: events in, effects out, questions, evaluation, what is noted."""
