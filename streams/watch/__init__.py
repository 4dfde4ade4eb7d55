"""Notices changes in the local roots of a running service: see README.md."""
