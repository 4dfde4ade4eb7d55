"""Summarizers of word processor, spreadsheet, presentation and e-book files."""
