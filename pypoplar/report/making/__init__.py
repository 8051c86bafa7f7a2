"""Makes reports of executables and of what their runs counted."""
