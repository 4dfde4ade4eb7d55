"""Formats of listings, one module each: they turn a body into children with a mark."""
