"""What a change would do at every destination, before it is made."""
