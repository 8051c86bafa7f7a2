"""Images as networks take them."""
