"""Attributes of sources and scripts: names in them, without syntax of their language."""

from collections.abc import Callable

from processors.essence.summarize import Found

Make = Callable[..., Found]


def test_directives_are_not_comments(summary: Make) -> None:
    """Preprocessor directives are not comments; classes and methods of Objective-C are types and functions."""
    found = summary(
        b"x.m",
        b"// Draws a whale.\n#import <Sea/Sea.h>\n#define TAIL 1\n\n@implementation Whale\n- (void)swim:(int)depth {\n}\n"
        b"+ (Whale *)whale { return nil; }\n@end\n",
    )
    assert found.attributes["comments"] == ["Draws a whale."]
    assert found.attributes["imports"] == ["Sea/Sea.h"]
    assert found.attributes["types"] == ["Whale"]
    assert found.attributes["functions"] == ["swim", "whale"]


def test_rules_and_keys_are_not_tables(summary: Make) -> None:
    """Words of rules and keys are not tables; the path of a script is not its purpose."""
    found = summary(
        b"x.sql",
        b"/* contrib/x/x--1.0.sql */\n\n-- Counts what floats in the harbour.\nALTER EXTENSION x UPDATE TO '1.0';\n"
        b"CREATE TABLE a (b int REFERENCES c ON UPDATE CASCADE);\nUPDATE ships SET b = 1;\n",
    )
    assert found.attributes["tables-changed"] == ["ships"]
    assert found.text("description") == "Counts what floats in the harbour."


def test_generator_note_is_neither_purpose_nor_title(summary: Make) -> None:
    """A note by the generating program is neither purpose nor title."""
    text = b"# created by tools/load.tcl -- do not edit\nnamespace eval ::sea {\n    ::msgcat::mcset de depth Tiefe\n}\n"
    found = summary(b"de.msg", text)
    assert "description" not in found.attributes
    assert found.text("title") == "de.msg"
    assert summary(b"x", b"# created by tools/load.tcl\nOf boats and more\n").text("title") == "Of boats and more"


def test_patch_lines_are_counted_in_hunks(summary: Make) -> None:
    """Lines are counted in hunks: neither the separator of message and patch nor a signature counts as removed."""
    mail = (
        b"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Ann Sea <ann@example.org>\n"
        b"Subject: [PATCH] Row\n\n- a list\n---\n a | 4 ++--\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n"
        b"--- two\n-three\n+++ four\n+five\n-- \n2.39.2\n\n"
    )
    found = summary(b"x.patch", mail)
    assert (found.text("lines-added"), found.text("lines-removed")) == ("2", "2")
    found = summary(b"x.patch", b"*** a\n--- b\n***************\n*** 1 ****\n- one\n--- 1 ----\n+ two\n")
    assert (found.text("lines-added"), found.text("lines-removed")) == ("1", "1")
