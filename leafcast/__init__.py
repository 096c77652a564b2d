"""The program: where concrete things meet."""
