"""Copyright files of Debian packages: copyright holders and title."""

import io

import pytest

from processors.essence.summarize import Facts, Found, summarize

NOTICE = """\
Redistributions must retain the above copyright notice, this list of conditions and the following disclaimer.
The above copyright notice and this permission notice shall be included in all copies, and the copyright
holders and contributors may not be named.
THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"; THE COPYRIGHT OWNER IS NOT LIABLE.
Copyright License. Subject to the terms, each Contributor grants You a copyright license to reproduce it.
    Copyright (C) <year>  <name of author>
    Copyright [yyyy] [name of copyright owner]
"""


def read(text: str, url: str = "http://example.org/x") -> Found:
    """Return the summary of a copyright file."""
    found, body = Found(), text.encode()
    summarize(Facts(b"copyright", url, "DebianCopyright", "text/x", len(body), 0, ""), io.BytesIO(body), found)
    return found


@pytest.mark.parametrize(
    ("statement", "holders"),
    [
        ("Copyright (C) 1984, 1994,\n   1997-2001, 2003-present Free Software Foundation, Inc.", ["Free Software Foundation, Inc"]),
        ("(c) 2004 Jon Smirl <jonsmirl@gmail.com>. All rights reserved.", ["Jon Smirl <jonsmirl@gmail.com>"]),
        ("Copyright \xa9 2009 Red Hat, Inc.\n\xa9 Keith Packard", ["Red Hat, Inc", "Keith Packard"]),
        ("Copyright Eric Anholt 2006\nCopyright by Todd C. Miller", ["Eric Anholt", "Todd C. Miller"]),
        ("It is Copyright (C) 1987-2022 by Larry Wall and others. All rights reserved.", ["Larry Wall and others"]),
        (
            "Copyright:\n Copyright 1996 Alexander Peslyak and it is hereby released.\n All copies are subject to:\n (a)",
            ["Alexander Peslyak"],
        ),
        (
            "Copyright: 1994 Debian Association, Inc.\n           1995 Sven Rudolph <sr@tu.de>\n  Ian Murdock\n 2001 n/a",
            ["Debian Association, Inc", "Sven Rudolph <sr@tu.de>", "Ian Murdock"],
        ),
        ("Upstream-Contact: https://example.org/\n Ada Tanner <ada@example.org>\n", ["Ada Tanner <ada@example.org>"]),
        (NOTICE, []),
    ],
    ids=("wrapped", "sign", "several", "without years", "sentence", "released", "field", "contact", "law"),
)
def test_holders_come_from_statements_and_fields(statement: str, holders: list[str]) -> None:
    """Copyright holders come from statements and fields, never from the licence's text about notices and holders."""
    assert read(f"License: BSD\n\n{statement}\n\n{NOTICE}").attributes.get("author", []) == holders


@pytest.mark.parametrize(
    ("text", "url", "title"),
    [
        ("Format: https://a.b/\nUpstream-Name: Zed\n", "file:///usr/share/doc/libzed1/copyright", "Zed: copyright"),
        ("This package was downloaded from\nhttps://a.b/\n", "file:///usr/share/doc/libzed1/copyright", "libzed1: copyright"),
        ("Format: https://a.b/\n", "http://a.b/zed.deb#usr/share/doc/libzed1/copyright", "libzed1: copyright"),
        ("Format: https://a.b/\n", "file:///src/zed-1.2/debian/copyright", "zed-1.2: copyright"),
        ("Format: https://a.b/\n", "http://a.b/copyright", "copyright"),
    ],
)
def test_title_is_package_name(text: str, url: str, title: str) -> None:
    """The title is the package name that the file states, else that of its location; the first line is not a title."""
    assert read(text, url).text("title") == title
