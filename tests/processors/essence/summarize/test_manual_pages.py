"""Manual pages: strings, names of people, the NAME section, dates."""

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found
from processors.essence.summarize.text._author_names import people
from processors.essence.summarize.text._troff import expand, unescape

Make = Callable[..., Found]

HEAD = '.TH A 1 2024-01-01\n.SH NAME\na \\- "what" it is for\n'


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (".ie \\n(.g .ds Aq \\(aq\n.el       .ds Aq '\nthe file\\*(Aqs name", "the file's name"),
        (".ie n \\{\\\n.  ds xx on a terminal\n'br\\}\n.el \\{\\\n.  ds xx in print\n'br\\}\n\\*(xx", "on a terminal"),
        (".if t .ds q in print\n.if n .ds q on a terminal\n\\*q", "on a terminal"),
        ('.ds lang "The language C\\" as of 1999\n.ds [ (\n\\*[lang]', "The language C"),
        (".ds a very\n.ds b \\*a, \\*a large\n\\*b", "very, very large"),
        (".ds #[ \\&\n.    ds ' \\&\n.if v .ds ' \\\\k:\\h'-2'\nde\\*'ja", "d\xe9ja"),
        ("\\*(lqas it is\\*(rq \\*(--", "\u201cas it is\u201d -"),
        (".ds a \\*a\\*a\n\\*a.", "."),
    ],
    ids=("groff", "block", "printer", "bracket", "nested", "accent", "own", "itself"),
)
def test_strings_have_defined_values(page: str, text: str) -> None:
    """A string has the value that a page defines in the branch that groff takes, or else troff's own."""
    assert unescape(expand(page).rpartition("\n")[2]) == text


def test_papers_define_strings(summary: Make) -> None:
    """A paper may define strings of its own."""
    found = summary(b"x.ms", b".ds ST Harvest\n.TL\nOf \\*(ST\n.AU\nC. M. Bowman\n.AB\nA.\n.AE\n.PP\nIt gathers.\n")
    assert found.text("title") == "Of Harvest"


PEOPLE = [
    ("Written by David M. Ihnat, David MacKenzie, and Jim Meyering.", ["David M. Ihnat", "David MacKenzie", "Jim Meyering"]),
    ("Wilf. (G.Wilford@ee.surrey.ac.uk). Colin Watson (c@d.org).", ["Wilf <G.Wilford@ee.surrey.ac.uk>", "Colin Watson <c@d.org>"]),
    ("brian d foy, <bdfoy@cpan.org>", ["brian d foy <bdfoy@cpan.org>"]),
    ("Makamaka Hannyaharamitu, <makamaka[at]cpan.org>", ["Makamaka Hannyaharamitu <makamaka@cpan.org>"]),
    ("David Hinds - dhinds@pcmcia.sourceforge.org", ["David Hinds <dhinds@pcmcia.sourceforge.org>"]),
    ("Lsof was written by Victor A.Abell <abe@purdue.edu> of Purdue University.", ["Victor A.Abell <abe@purdue.edu>"]),
    ("It was contributed by Dennis Morse of Stanford University.", ["Dennis Morse"]),
    ("Albert Cahalan wrote kill in 1999 to replace a bsdutils one.", ["Albert Cahalan"]),
    (
        "A derivative of ssh 1.2.12 by Tatu Ylonen. Theo de Raadt and Dug Song removed bugs.",
        ["Tatu Ylonen", "Theo de Raadt", "Dug Song"],
    ),
    ("Jim Fulton, MIT X Consortium", ["Jim Fulton"]),
    ("Maintained by the LLVM Team (https://llvm.org/).", []),
    ("See /usr/share/doc/dpkg/THANKS for the list of people who have contributed to dpkg.", []),
    ("Please report bugs to <bug-gnupg@gnu.org>. pam_unix was written by various people.", []),
    ("In memory of Dennis M. Ritchie.", []),
]


@pytest.mark.parametrize(("sentence", "names"), PEOPLE)
def test_authors_are_extracted_from_sentence(sentence: str, names: list[str]) -> None:
    """A sentence about authorship gives the authors with their addresses, never the sentence itself."""
    assert people(sentence) == names


@pytest.mark.parametrize(
    ("section", "authors"),
    [
        ("Jason Gunthorpe\n.br\nMichael Vogt\n.PP\nAPT team", ["Jason Gunthorpe", "Michael Vogt"]),
        (".nf\nMarkus Scherer\nGeorge Rhoten\n.fi", ["Markus Scherer", "George Rhoten"]),
        (".MT nmiell@gmail.com\nNicholas Miell\n.ME\nwrote pwdx in 2004.", ["Nicholas Miell <nmiell@gmail.com>"]),
        ('It was written by\n.MTO "tytso\\(atmit.edu" "Theodore Ts\\(cqo" "."', ["Theodore Ts\u2019o <tytso@mit.edu>"]),
        (
            ".An -nosplit\n.An Bob Beck , Niels Provos\nand\n.An Dug Song Aq Mt d@m.org .",
            ["Bob Beck", "Niels Provos", "Dug Song <d@m.org>"],
        ),
        ("The APT team, and others.\n.PP\nAPT team", ["The APT team, and others", "APT team"]),
        ("There are several implementations of it, and nobody knows any more who began.", []),
    ],
    ids=("breaks", "unfilled", "link", "asciidoctor", "mdoc", "short", "sentence"),
)
def test_authors_come_from_authors_section(section: str, authors: list[str], summary: Make) -> None:
    """Authors come from the AUTHORS section, not from a section whose heading only begins alike."""
    found = summary(b"a.1", f"{HEAD}.SH AUTHORIZATION\nPolkit reads it.\n.SH AUTHORS\n{section}\n.SH BUGS\nNone.\n".encode())
    assert found.attributes.get("author", []) == authors


@pytest.mark.parametrize(
    ("section", "title", "description"),
    [
        ("hostname \\- show its name\n.br\ndnsdomainname \\- show its domain", "hostname - show its name", "show its name"),
        ("modules \\- Modules Reference\n.sp\nThey are listed here.", "modules - Modules Reference", "Modules Reference"),
        ("inko \\-", "inko", ""),
        ('.Nm des_crypt ,\n.Nm ecb_crypt\n.Nd "fast DES"', "des_crypt, ecb_crypt - fast DES", "fast DES"),
        ("a,\n.PP\nb \\- two", "a, b - two", "two"),
    ],
    ids=("several", "paragraphs", "nothing", "quotes", "late"),
)
def test_title_and_description_come_from_name_section(section: str, title: str, description: str, summary: Make) -> None:
    """The title is the first line of the NAME section as printed; the lines after it are text."""
    found = summary(b"a.1", f".TH A 1\n.SH NAME\n{section}\n.SH BUGS\nNone.\n".encode())
    assert (found.text("title"), found.text("description")) == (title, description)
    more = section.rpartition("\n")[2]
    assert (more.replace("\\-", "-") in found.text("partial-text")) == (".br" in section or ".sp" in section)


@pytest.mark.parametrize(
    ("arguments", "date"),
    [
        ('"LVM TOOLS 2.03.16(2) (2022-05-18)" "Red Hat, Inc"', "2022-05-18"),
        ('"Version 590: 03 Jun 2021"', "2021-06-03"),
        ('"v3.0 of 8 May 2008"', "2008-05-08"),
        ('"squeeze" "13/Jun/2010" "Debian GNU/Linux"', "2010-06-13"),
        ('"16 June 2008 (v3.0)" Info-ZIP', "2008-06-16"),
        ('"Version 1.5 (2009)"', ""),
        ('"libX 1.2" "X Version 11"', ""),
        ('"2024" "PostgreSQL 15.2"', "2024"),
    ],
)
def test_page_has_one_date(arguments: str, date: str, summary: Make) -> None:
    """A page has one date, also where it is next to a version or in the place of another argument."""
    assert summary(b"a.1", f".TH A 1 {arguments}\n.SH NAME\na \\- b\n".encode()).text("date") == date
