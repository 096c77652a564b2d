"""The definitions of our kinds, as API servers want them."""
