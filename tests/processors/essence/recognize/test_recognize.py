import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.recognize import UNRECOGNIZED, Recognized, recognize, table
from processors.essence.recognize.predicates import PROGRAMS


def _tar(dialect: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return out.getvalue()


def _v7() -> bytes:
    header = bytearray(_tar(tarfile.USTAR_FORMAT)[:512])
    header[257:345] = bytes(88)
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}".encode() + b"\0 "
    return bytes(header) + bytes(1024)


def _zip(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return out.getvalue()


GZIP = gzip.compress(b"x" * 100, mtime=0)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
MACBINARY = b"\0\1a" + bytes(99) + b"mBIN" + bytes(100)
MAN = b'.\\" by hand\n.TH LS 1\n.SH NAME\nls \\- list\n'
PAGE = b"<!DOCTYPE html><title>x</title>"

OFFICE, ODF = "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."

CASES = [
    # name, content, declared content type -> type, media type, evidence
    ("x", PAGE, "text/html; charset=utf-8", "HTML", "text/html", "stated"),
    ("x.html", PAGE, "text/plain", "HTML", "text/html", "name"),
    ("x.html", PAGE, "application/octet-stream", "HTML", "text/html", "name"),
    ("x", PAGE, "", "HTML", "text/html", "content"),
    ("x", b'<?xml version="1.0"?>\n<!-- c -->\n<!DOCTYPE html PUBLIC>\n<html>', "", "HTML", "text/html", "content"),
    ("x.pdf", b"%PDF-1.4\n", "text/html", "PDF", "application/pdf", "name"),
    ("x.html", b"%PDF-1.4\n%abc", "text/html", "PDF", "application/pdf", "content"),
    ("x.html", b"\x00\x01\x02\x03" * 9, "", UNRECOGNIZED, "application/octet-stream", "content"),
    ("x.html", PNG, "text/html", "Image", "image/png", "content"),
    ("x.gz", GZIP, "", "GNUCompressed", "application/gzip", "name"),
    ("x.gz", b"only words", "application/gzip", "RawText", "text/plain", "content"),
    ("x.txt", GZIP, "", "GNUCompressed", "application/gzip", "content"),
    ("x.tar.gz", GZIP, "application/x-gzip", "GNUCompressed", "application/x-gzip", "stated"),
    ("README.gz", GZIP, "", "GNUCompressed", "application/gzip", "name"),
    ("x.Z", b"\x1f\x9d\x90abc", "", "Compressed", "application/x-compress", "name"),
    ("x.bz2", b"BZh91AY&SYabc", "", "Bzip2", "application/x-bzip2", "name"),
    ("x.xz", b"\xfd7zXZ\x00\x00", "", "XZ", "application/x-xz", "name"),
    ("x", _tar(tarfile.USTAR_FORMAT), "", "Tar", "application/x-tar", "content"),
    ("x.tar", _tar(tarfile.GNU_FORMAT), "", "Tar", "application/x-tar", "program"),
    ("x", _v7(), "", "Tar", "application/x-tar", "program"),
    ("x.tar", b"no archive", "", "RawText", "text/plain", "content"),
    ("x.zip", _zip("a"), "", "Zip", "application/zip", "name"),
    ("x.jar", _zip("a"), "", "Zip", "application/java-archive", "name"),
    ("x", _zip("[Content_Types].xml"), "", "OfficeDocument", table().rules["OfficeDocument"].media, "content"),
    ("x.deb", b"!<arch>\ndebian-binary   ", "", "DebianPackage", "application/vnd.debian.binary-package", "name"),
    ("x", _zip("xl/workbook.xml"), "", "OfficeDocument", OFFICE + "spreadsheetml.sheet", "content"),
    ("x.pptx", _zip("_rels/.rels"), "", "OfficeDocument", OFFICE + "presentationml.presentation", "name"),
    ("x.nupkg", _zip("_rels/.rels"), "", "Zip", "application/zip", "name"),
    ("x", _zip("mimetype" + ODF + "spreadsheet"), "", "OpenDocument", ODF + "spreadsheet", "content"),
    ("x", _zip("mimetype" + ODF + "text"), "", "OpenDocument", ODF + "text", "content"),
    ("x.ods", _zip("content.xml"), "", "OpenDocument", ODF + "spreadsheet", "name"),
    ("x.epub", _zip("META-INF/container.xml"), "", "EPUB", "application/epub+zip", "name"),
    ("x", _zip("META-INF/container.xml"), "", "EPUB", "application/epub+zip", "content"),
    ("x.jar", _zip("META-INF/MANIFEST.MF"), "", "Zip", "application/java-archive", "name"),
    ("x", b"From: a@b\nTo: c@d\nSubject: s\nDate: x\n\ntext", "", "Mail", "message/rfc822", "content"),
    ("x", b"X-Note: folded\n\tfield\nMIME-Version: 1.0\nFrom: a@b\nSubject: s\n\n", "", "Mail", "message/rfc822", "content"),
    ("x", b"Package: x\nFrom: nobody\n\ntext", "", "RawText", "text/plain", "content"),
    ("x.eml", b"anything", "", "Mail", "message/rfc822", "name"),
    ("x.txt", b"Return-Path: <a@b>\nFrom: a@b\n\ntext", "", "Mail", "message/rfc822", "content"),
    ("x.txt", b"From a at b  Fri Jul  1 10:00:00 1994\nFrom: a at b\n", "", "Mailbox", "application/mbox", "content"),
    ("x.txt", b"From a@b Fri Jul  1 10:00:00 1994\nFrom: a@b\n", "", "Mailbox", "application/mbox", "content"),
    ("x.txt", b"#include <stdio.h>\n", "", "RawText", "text/plain", "name"),
    ("x.dtd", b"<!ELEMENT a (b)>", "", "SourceCode", "application/xml-dtd", "name"),
    ("x", b"From: a@b\nSubject: s\nNewsgroups: rec.boats\nDate: x\n\n", "", "News", "message/rfc822", "content"),
    ("x", b"Path: news.example!not-for-mail\nFrom: a@b\n", "", "News", "message/rfc822", "content"),
    ("x", b"From a@b Fri Jul  1 10:00:00 1994\nFrom: a@b\n", "", "Mailbox", "application/mbox", "content"),
    (
        "x",
        b"From " + b"a" * 40 + b" Mon Sep 17 00:00:00 2001\nFrom: a@b\n---\ndiff --git a/x b/x\n",
        "",
        "RawText",
        "text/plain",
        "content",
    ),
    ("x", b'{"cells": [{"cell_type": "code"}]}', "", "Notebook", "application/x-ipynb+json", "content"),
    ("x.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "OLE", "application/msword", "name"),
    ("x.doc", b"{\\rtf1 }", "", "RTF", "application/rtf", "content"),
    ("x", b"WARC/1.1\r\n", "", "WARC", "application/warc", "content"),
    ("libx.a", b"!<arch>\nx.o/", "", "Archive", "application/x-archive", "name"),
    ("README", b"Read me", "", "README", "text/plain", "name"),
    ("README.md", b"# Read me", "", "README", "text/plain", "name"),
    ("readme.html", PAGE, "", "HTML", "text/html", "name"),
    ("00-INDEX", b"files", "", "README", "text/plain", "name"),
    ("INSTALL", b"make", "", "README", "text/plain", "name"),
    ("install.sh", b"#!/bin/sh\n", "", "ShellScript", "text/x-shellscript", "name"),
    ("FAQ", b"Why?", "", "FAQ", "text/plain", "name"),
    ("python-faq.txt", b"Why?", "", "FAQ", "text/plain", "name"),
    ("copyright", b"Me", "", "DebianCopyright", "text/x-debian-copyright", "name"),
    ("changelog.Debian", b"x (1) unstable; urgency=low\n", "", "ChangeLog", "text/plain", "name"),
    ("LICENSE.txt", b"You may", "", "License", "text/plain", "name"),
    ("notes.md", b"# Notes", "", "Markdown", "text/markdown", "name"),
    ("ls.1", MAN, "", "ManPage", "text/troff", "program"),
    ("Foo::Bar.3pm", MAN, "", "ManPage", "text/troff", "program"),
    ("alias.1", b".so man1/ls.1\n", "", "ManPage", "text/troff", "program"),
    ("ls", MAN, "", "ManPage", "text/troff", "content"),
    ("version.1", b"It is a text.", "", "RawText", "text/plain", "content"),
    ("libc.so.6", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00", "", "Binary", "application/x-executable", "content"),
    ("x.o", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00", "", "Object", "application/x-object", "name"),
    ("x.bin", MACBINARY, "", "MacBinary", "application/x-macbinary", "program"),
    ("x", MACBINARY, "", "MacBinary", "application/x-macbinary", "content"),
    ("x.bin", b"\0\1a" + bytes(500), "", UNRECOGNIZED, "application/octet-stream", "content"),
    ("x", b"(This file must be converted with BinHex 4.0)\n:", "", "BinHex", "application/mac-binhex40", "content"),
    ("x", b"begin 644 a\n#0V%T\n`\nend\n", "", "Uuencoded", "text/x-uuencode", "content"),
    ("x", b"begin 644 a\n1Eq3i\n+\nend\n", "", "Uuencoded", "text/x-uuencode", "content"),
    ("x", b"Here it is.\n\nbegin 644 a\nM" + b"X" * 60 + b"\n", "", "Uuencoded", "text/x-uuencode", "content"),
    ("x", b"We begin 644 words\nbegin 644 a\nM like this\n", "", "RawText", "text/plain", "content"),
    ("x.zst", b"\x52*M\x18", "", "Zstandard", "application/zstd", "name"),
    ("x", b"\x02!L\x18", "", "LZ4", "application/x-lz4", "content"),
    ("control", b"Package: x\nVersion: 1\n", "", "DebianControl", "text/x-debian-control", "program"),
    ("control", b"who is in control here?\n", "", "RawText", "text/plain", "content"),
    ("x", b"Source: x\nSection: text\nMaintainer: Ann\n", "", "DebianControl", "text/x-debian-control", "content"),
    ("x", b"Source: of all evil\n", "", "RawText", "text/plain", "content"),
    ("x.c", b"int x;", "", "C", "text/x-c", "name"),
    ("x.h", b"int x;", "", "CHeader", "text/x-c", "name"),
    ("x.hpp", b"int x;", "", "CHeader", "text/x-c++", "name"),
    ("run", b"#!/usr/bin/env python3\n", "", "Python", "text/x-python", "content"),
    ("run", b"#!/usr/bin/perl -w\n", "", "Perl", "text/x-perl", "content"),
    ("run", b"#!/bin/bash\n", "", "ShellScript", "text/x-shellscript", "content"),
    ("lake", b"# ferns(1) completion  -*- shell-script -*-\n#\n_ferns() {\n", "", "ShellScript", "text/x-shellscript", "content"),
    ("lake", b"# Ferns\n\n_ferns_module()\n{\n\tlocal cur\n", "", "ShellScript", "text/x-shellscript", "content"),
    ("lake", b"#include <ferns.h>\nmain()\n{\n", "", "C", "text/x-c", "content"),
    ("lake", b"Ferns() are what {\n", "", "RawText", "text/plain", "content"),
    ("x.vim", '" Türme\n'.encode() * 40 + b"\x16", "", "SourceCode", "text/x-vim", "name"),
    ("Makefile.in", b"all:\n", "", "Makefile", "text/x-makefile", "name"),
    ("x", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "", "Patch", "text/x-patch", "content"),
    ("x.jpeg", b"\xff\xd8\xff\xe0", "", "Image", "image/jpeg", "name"),
    ("x.jpeg", b"\xff\xd8\xff\xe0", "image/jpeg", "Image", "image/jpeg", "stated"),
    ("x.ogv", b"OggS" + bytes(25) + b"theora", "", "Video", "video/ogg", "name"),
    ("x", b"OggS" + bytes(25) + b"vorbis", "", "Audio", "audio/ogg", "content"),
    ("x.ps", b"%!PS-Adobe-3.0\n", "", "PostScript", "application/postscript", "name"),
    ("x.json", b'{"a": 1}', "", "JSON", "application/json", "name"),
    ("x", b'{"a": 1}', "", "JSON", "application/json", "content"),
    ("x", b'<?xml version="1.0"?><a/>', "", "XML", "application/xml", "content"),
    ("x.svg", b"<svg xmlns='x'/>", "", "SVG", "image/svg+xml", "name"),
    ("x", b"\\documentclass{article}", "", "TeX", "text/x-tex", "content"),
    ("x.txt", "\ufeffTürme".encode("utf-16-le"), "", "RawText", "text/plain", "name"),
    ("x", "Müller".encode("latin-1"), "", "RawText", "text/plain", "content"),
    ("x.py", b"", "", "Python", "text/x-python", "name"),
    ("x", b"", "", UNRECOGNIZED, "inode/x-empty", "content"),
    ("x.gz", b"", "", UNRECOGNIZED, "inode/x-empty", "content"),
]


@pytest.mark.parametrize(("name", "head", "stated", "kind", "media", "evidence"), CASES)
def test_type_media_type_and_evidence(name: str, head: bytes, stated: str, kind: str, media: str, evidence: str) -> None:
    """The declared type, then the name, then the content determine the type, unless the content contradicts."""
    assert recognize(name.encode(), head, stated) == Recognized(kind, media, evidence)


@given(st.binary(max_size=20), st.binary(max_size=700), st.text(max_size=30))
def test_never_raises(name: bytes, head: bytes, stated: str) -> None:
    """Any name, content and declared type give a known type with a media type."""
    found = recognize(name, head, stated)
    assert found.type in table().rules
    assert "/" in found.content_type


@pytest.mark.parametrize("name", sorted(table().rules))
def test_type_rules_are_consistent(name: str) -> None:
    """Every type extends an existing type and ends at Unrecognized; programs exist; suffixes and media types are well formed."""
    rules = table().rules
    rule, seen = rules[name], {name}
    assert not rule.program or rule.program in PROGRAMS
    assert all(s == s.lower() and not s.startswith(".") for s in rule.suffixes)
    assert rule.media.count("/") == 1
    while name != UNRECOGNIZED:
        name = rules[name].extends
        assert name == UNRECOGNIZED or name not in seen
        seen.add(name)


def test_every_type_is_reachable() -> None:
    """Every listed type is reachable (folders and links through their listing, packages through their members)."""
    for name, rule in table().rules.items():
        ways = (rule.suffixes, rule.names, rule.starts, rule.patterns, rule.program)
        assert any(ways) or name in {UNRECOGNIZED, "Directory", "SymbolicLink", "SourceDistribution", "GopherMenu"}, name
