"""When variables live."""
