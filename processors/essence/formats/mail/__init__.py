"""Formats of mail: header fields, MIME, encoded words, Outlook's compressed text."""
