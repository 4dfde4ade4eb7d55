"""One adapter a protocol."""
