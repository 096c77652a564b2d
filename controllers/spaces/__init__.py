"""A space as the centre follows it: read whole, told of each change, trusted while it goes on."""
