"""Summarizers of images, sound, video and fonts."""
