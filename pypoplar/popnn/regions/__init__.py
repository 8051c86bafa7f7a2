"""Regions of fields: what boxes of any place and size have, as fields of one size."""
