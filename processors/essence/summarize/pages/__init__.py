"""Summarizers of page formats: HTML, PDF, PostScript, DVI."""
