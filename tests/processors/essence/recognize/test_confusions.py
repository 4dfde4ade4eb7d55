"""Misrecognitions found with labelled corpora of other projects (tests/bench/recognition.py), each as a small sample of our own."""

from __future__ import annotations

import io
import zipfile

import pytest

from processors.essence.recognize import Table, TypeRule, recognize, table
from processors.essence.recognize.predicates import PEEK

FEED = b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>x</title></channel></rss>\n'
TRANSLATION = b'<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1"/>\n'
DER = b"\x30\x82\x02\xba\x30\x82\x02\x23\xa0\x03\x02\x01\x02" + bytes(40)
PEM = b"Certificate of x\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
ELF = b"\x7fELF\x02\x01\x01" + bytes(9)
MP4 = b"\0\0\0\x18ftypmp42" + bytes(40)
M4A = b"\0\0\0\x18ftypM4A " + bytes(40)
ASF = b"0&\xb2u\x8ef\xcf\x11\xa6\xd9\x00\xaa\x00b\xcel" + bytes(40)
TEXT = b"""A Tutor of the Editor

It has so many commands that a book would not hold them all.
This one tells of those that you need to work with it in the beginning.
All of them are to be tried, and that takes half an hour at the most.
"""
NOISE = b"\x00\x01\x02\x03" * 20
PACKETS = (b"G" + bytes(187)) * 5


def _zip(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    return out.getvalue()


CONFUSIONS = [
    # Copies and templates have the type of their original.
    ("x.c.orig", b"int x;\n", "C"),
    ("x.rs.in~", b"fn main() {}\n", "Rust"),
    ("x.conf.dpkg-old", b"a = b\n", "Configuration"),
    ("x.md.new", b"# Notes\n", "Markdown"),
    ("x.bak", b"words\n", "RawText"),
    ("Makefile.in", b"all:\n", "Makefile"),
    # The name is ambiguous.
    ("feed.xml", FEED, "RSS"),
    ("x.xml", b"<!-- by hand -->\n<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
    ("x.eml", b"From a@b Fri Jul  1 10:00:00 1994\nFrom: a@b\n\n", "Mailbox"),
    ("x.txt", b"BEGIN:VCARD\nVERSION:3.0\nEND:VCARD\n", "Calendar"),
    # One suffix is shared by several formats.
    ("x.ts", TRANSLATION, "Translation"),
    ("x.ts", b"export const a: number = 1;\n", "JavaScript"),
    ("x.ts", PACKETS, "Video"),
    ("x.mod", b"MODULE a;\nEND a.\n", "SourceCode"),
    ("x.mod", NOISE, "Audio"),
    ("x.mod", ELF + b"\x01\x00" + bytes(40), "Object"),
    ("x.md", NOISE, "Cartridge"),
    ("x.crt", PEM, "Certificate"),
    ("x.crt", DER, "Cryptography"),
    ("x.key", PEM, "Certificate"),
    ("x.key", _zip("Index/Document.iwa"), "Zip"),
    ("x.asc", b"(an old name for plain text)\n", "RawText"),
    ("x.3ds", b"MM\x10\0\0\0\x02\0\x0a\0\0\0" + bytes(30), "Model"),
    ("x.mm", b".TL\nMinutes\n", "Troff"),
    ("x.mm", b"@implementation A\n@end\n", "SourceCode"),
    ("x.pc", b"Name: x\nVersion: 1\n", "Configuration"),
    ("x.stl", b"solid x\nfacet normal 0 0 1\n", "ModelText"),
    ("x.m4a", MP4, "Audio"),
    ("x", M4A, "Audio"),
    ("x.mp4", MP4, "Video"),
    ("x", MP4, "Video"),
    ("x.wma", ASF, "Audio"),
    ("x.wmv", ASF, "Video"),
    # Several types have the suffix: the content decides.
    ("tutor.cs", TEXT, "RawText"),
    ("tutor.es", TEXT, "RawText"),
    ("tutor.pl", TEXT, "RawText"),
    ("tutor.sk", TEXT, "RawText"),
    ("x.py", b'import os\n"""' + TEXT + b'"""\n', "Python"),
    ("x.c", b"/*\n" + TEXT + b"*/\n", "C"),
    ("x.f", b"".join(b"C     " + line + b"\n" for line in TEXT.splitlines()), "Fortran"),
    ("x.cs", b"using System;\n", "CSharp"),
    ("hyphen.cs", b"% Czech\n\\patterns{\n.a2\n}\n", "TeX"),
    ("x.pl", b"% Facts.\nfather(a, b).\n", "SourceCode"),
    ("x.pl", b":- module(a, [b/1]).\nb(X) :- c(X).\n", "SourceCode"),
    ("x.pl", b"%map = (a => 1);\nprint 1;\n", "Perl"),
    ("x.t", b"use Test::More;\n", "Perl"),
    ("x.t", b'#charset "utf-8"\n#include <adv3.h>\n', "SourceCode"),
    ("x.t", b".TL\nA Paper\n", "Troff"),
    ("x.mm", b'\\" Example\n.HU "macro"\n', "Troff"),
    ("x.mm", b"<map version='1'>\n", "XML"),
    ("x.cls", b"VERSION 1.0 CLASS\nBEGIN\n", "SourceCode"),
    ("x.cls", b"\\NeedsTeXFormat{LaTeX2e}\n", "TeX"),
    ("x.d", b"x.o: x.c \\\n  x.h\n", "Makefile"),
    ("x.d", b"import std.stdio;\n", "SourceCode"),
    ("x.mod", b"# What it is for.\n[description]\nx\n", "Configuration"),
    ("x.inc", b"#define A 1\n", "C"),
    ("x.inc", b"CFLAGS += -g\n", "Makefile"),
    ("x.inc", b"# if you want it, include it\n", "RawText"),
    ("x.doc", b"<html><body>x</body></html>", "HTML"),
    ("x.doc", b"A text.\n", "RawText"),
    ("icon-theme.cache", b"\0\1\0\0\0\0\0\x0c\0\0\0\x10" + bytes(40), "Database"),
    # The name of a package format whose first member is unusual.
    ("x.epub", _zip("a.html"), "EPUB"),
    ("x.odt", _zip("Pictures/a.png"), "OpenDocument"),
    ("x.docx", _zip("a.xml"), "OfficeDocument"),
    ("x", _zip("a.xml"), "Zip"),
    # The longest signature decides.
    ("x", ELF + b"\x02\x00" + bytes(40), "Binary"),
    ("x", b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x04\x00" + bytes(40), "Core"),
    ("x", b"FORM\0\0\0\x40ILBMBMHD" + bytes(40), "OtherImage"),
    ("x", b"FORM\0\0\0\x40AIFFCOMM" + bytes(40), "Audio"),
    ("x", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypmjp2" + bytes(40), "Video"),
    ("x", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 " + bytes(40), "Image"),
    # A short signature that is a word does not count in a text.
    ("x", b"MAC addresses are of 48 bits.\n", "RawText"),
    ("x", b"GRIB is a format of weather services.\n", "RawText"),
    ("x", b"MZ is what a program of DOS begins with.\n", "RawText"),
    ("x.txt", b"FLIF, an image format.\n", "RawText"),
    ("x", b"P3\n1 1\n255\n0 0 0\n", "Netpbm"),
    # A Maildir message: its name ends in a host name, not in a suffix.
    ("1795409274.M623587P22625Q1.lake.example.org", b"Subject: s\nFrom: a@b\nTo: c@d\n\ntext", "Mail"),
    ("1795409274.22625_1.host.pl", b"Subject: s\nFrom: a@b\nTo: c@d\n\ntext", "Mail"),
    ("1795409274.M6P2Q1.vm:2,S", b"Subject: s\nFrom: a@b\nTo: c@d\n\ntext", "Mail"),
    ("1795409274.M6P2.vm", b"a text\n", "RawText"),
    ("1795409274.5.pl", b"a text\n", "Perl"),
    # Message catalogs, recognized by name and by content.
    ("x.po", b'msgid ""\nmsgstr ""\n', "Translation"),
    ("x.mo", b"\xde\x12\x04\x95" + bytes(24), "Translation"),
    ("x.mo", b"model A\nend A;\n", "SourceCode"),
    ("x", b"\x95\x04\x12\xde" + bytes(24), "Translation"),
    ("x", b'# by hand\n\n#: a.c\nmsgid ""\n"a"\nmsgstr ""\n"b"\n', "Translation"),
    ("x", TRANSLATION, "Translation"),
    ("x.xlf", b"<xliff version='1.2'/>", "Translation"),
    # Names for which the suffix is more specific.
    ("install.rst", b"Install\n=======\n", "ReStructuredText"),
    ("HACKING.md", b"# Hacking\n", "Markdown"),
    ("INSTALL", b"make\n", "README"),
    ("INSTALL.unix", b"make\n", "README"),
    ("install.txt", b"make\n", "README"),
    ("todo.txt", b"- a\n", "RawText"),
    ("todo", b"- a\n", "RawText"),
    ("NEWS", b"* What is new in 1.2\n", "ChangeLog"),
    ("NEWS-1.2", b"* What is new in 1.2\n", "ChangeLog"),
    ("news.txt", b"Path: a!b\nFrom: a@b\nNewsgroups: rec.boats\n\ntext\n", "News"),
    ("news", b"From: a@b\nSubject: s\nNewsgroups: rec.boats\nDate: x\n\ntext\n", "News"),
    ("news.txt", b"It has rained.\n", "RawText"),
    # Messages with few fields.
    ("x.txt", b"From: a@b\nTo: c@d\nSubject: s\n\ntext", "Mail"),
    ("x.txt", b"MIME-Version: 1.0\nContent-Type: text/plain\n\ntext", "Mail"),
    ("x.txt", b"From: the editors\nSubject: to change\n", "RawText"),
    # Well-known names.
    ("NEWS.Debian", b"x (1) unstable; urgency=low\n", "ChangeLog"),
    ("t1lmr.fd", b"\\ProvidesFile{t1lmr.fd}\n", "TeX"),
    # A stray control character in a text.
    ("x.info", b"This is x.info, produced by makeinfo version 7.\n\n\x1f\n" + b"File: x.info\n" * 20, "Info"),
    ("x.txt", b"\x1b$)C\x0e!]\x0f\n", "RawText"),
    ("x.c", b"int x; /* \x01 */\n" + b"int y;\n" * 40, "C"),
    ("x.c", b"int x; /* \x00 */\n" + b"int y;\n" * 40, "Unrecognized"),
    # Content whose name tells nothing.
    ("x", b"#!/usr/bin/unheard-of\nanything\n", "SourceCode"),
    ("x", b"[1, 2.5, -3e4]\n", "JSON"),
    ("x", b"{}\n", "JSON"),
    ("x", b"[1] A reference.\n", "RawText"),
    ("x", b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>", "XML"),
    ("x", b"From a printer\x00\x01\n%PDF-1.4\n" + bytes(90), "PDF"),
    ("x", b"CACHE MANIFEST\n/a.css\n", "Configuration"),
    ("x", b"#EXTM3U\na.mp3\n", "Playlist"),
]


@pytest.mark.parametrize(("name", "head", "kind"), CONFUSIONS)
def test_former_misrecognitions_are_fixed(name: str, head: bytes, kind: str) -> None:
    """A file that was once misrecognized gets its correct type."""
    assert recognize(name.encode(), head).type == kind


def test_longest_signature_wins() -> None:
    """The longest matching signature wins, the first among equals; a signature that is a word does not count in a text."""
    rules = {
        "Short": TypeRule(media="a/short", starts=("AB\u0001",)),
        "Long": TypeRule(media="a/long", starts=("AB\u0001; 4:C",)),
        "Again": TypeRule(media="a/again", starts=("AB\u0001",)),
        "Word": TypeRule(media="a/word", starts=("WORD",)),
    }
    found = Table(rules)
    assert found.sign(b"AB\x01", False) == ("Short", "a/short")
    assert found.sign(b"AB\x01.C", False) == ("Long", "a/long")
    assert found.sign(b"WORD", False) == ("Word", "a/word")
    assert found.sign(b"WORD", True) is None
    assert found.sign(b"", False) is None


MEDIA = [
    ("x.m", b"% solves it\nfunction y = f(x)\n", "text/x-matlab"),
    ("x.m", b"#import <Foundation/Foundation.h>\n", "text/x-objective-c"),
    ("x.m", b"(* solves it *)\nf[x_] := x\n", "text/x-mathematica"),
    ("x.v", b"Require Import Arith.\n", "text/x-coq"),
    ("x.v", b"module a(input b);\n", "text/x-verilog"),
    ("x.pl", b"a :- b.\n", "text/x-prolog"),
    ("x.mod", b"<!ENTITY % a 'b'>\n", "application/xml-dtd"),
]


@pytest.mark.parametrize(("name", "head", "media"), MEDIA)
def test_content_decides_between_languages_of_a_suffix(name: str, head: bytes, media: str) -> None:
    """For languages that share a suffix, the content determines the media type."""
    assert recognize(name.encode(), head)[1:] == (media, "name")


def test_text_patterns_are_linear() -> None:
    """No text pattern takes long on a text that nearly matches or repeats the start of a match."""
    starts = (b"[1,", b"{} ", b"<a ", b"<!--", b"<?xml ", b"@", b"-----BEGIN ", b"#!", b"\n", b" ", b"a: b\n", b"digraph ")
    for name in (b"x", *(b"x." + suffix.encode() for suffix in table().claims)):
        for start in (*starts, b'\\"\n', b"a b c d ", b"a(", b"a.o", b"# \n", b"package "):
            assert recognize(name, start * (PEEK // len(start))).type in table().rules
