"""Questions that go down hop by hop, and the answers to them."""
