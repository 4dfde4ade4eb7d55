"""Summarizers of bibliographies, package lists and other records about objects."""
