"""The operations of device code: a row for each, with everything that there is to know of it."""
