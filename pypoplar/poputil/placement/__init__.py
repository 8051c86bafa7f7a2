"""Which tiles hold what: by use, on another IPU, spread along a dimension."""
