"""Unnesters of archives, disk images and documents with attachments."""
