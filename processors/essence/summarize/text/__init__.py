"""Summarizers of text and text markup, mail and manual pages."""
