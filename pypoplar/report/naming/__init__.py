"""What stands under names: trees of their paths, and what differs by them."""
