"""Summarizers of source code, build files, patches and version control files."""
