"""Sound: title, artist, album and the like from its tags, duration (ID3, Vorbis comments, MP4, RIFF, AIFF, ASF).

By mutagen, which reads tags alone; what it does not know, `_sounds` may. It is handed a file that counts: a tag may claim to be
as large as the file, and a chain of pages to go on through all of it. What nobody knows gives what Unrecognized gives.
"""

from __future__ import annotations

import importlib
from typing import Any, BinaryIO

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.media._riff import add_info
from processors.essence.summarize.media._sounds import add_midi, add_sound

MAX_READ = 32 << 20
"""Bytes that are read in all."""
MAX_READS = 50_000
INFO = 65_536
"""Bytes of WAV and MIDI in which what they say of themselves may stand before the sound."""
HEAD = 4_096
"""Bytes that are read of what mutagen does not know."""
VALUES = 20

NAMES = {
    "title": "title", "artist": "author", "albumartist": "author", "author": "author", "performer": "author",
    "composer": "composer", "album": "album", "date": "date", "genre": "keywords", "comment": "description",
    "description": "description", "copyright": "copyright", "organization": "organization", "language": "language",
    "tracknumber": "track", "encodedby": "generator", "encoder": "generator", "website": "url-references",
    "contact": "url-references", "license": "license", "lyrics": "partial-text",
}  # fmt: skip
MEASURES = (
    ("length", "duration", 1, 1e9), ("bitrate", "bitrate", 1, 2e8), ("sample_rate", "sample-rate", 1_000, 2e7),
    ("channels", "channels", 1, 64),
)  # fmt: skip
"""What is told of a sound, and the least and most that can be meant: of a film in Windows Media mutagen may read the picture's."""
_LATE = "mp3 trueaudio oggtheora oggspeex oggvorbis oggflac flac aiff apev2 mp4 easyid3 easymp4 id3 wavpack musepack monkeysaudio"
_MODULES = (*f"{_LATE} optimfrog asf oggopus aac ac3 smf tak dsf dsdiff wave".split(),)


class _Counted:
    """A file that ends the work of its reader when too much of it is read."""

    def __init__(self, body: BinaryIO, name: bytes = b"") -> None:
        self.body = body
        self.left = MAX_READ
        self.reads = 0
        self.seek = body.seek
        self.tell = body.tell
        # By which mutagen tells what begins in no way of its own.
        self.name = name.decode("utf-8", "replace")

    def read(self, size: int = -1) -> bytes:
        """At most as many bytes as may still be read. Raises SummaryError where there are none."""
        self.reads += 1
        if self.left <= 0 or self.reads > MAX_READS:
            raise SummaryError("tags that go on through more of the file than is read")
        raw = self.body.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(raw)
        return raw


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, album, date and others from the tags, duration (seconds), bitrate, sample-rate."""
    mutagen = importlib.import_module("mutagen")
    try:
        file = mutagen.File(_Counted(body, facts.name), easy=True)
    except mutagen.MutagenError as error:
        _tags(_id3(body), found)
        raise SummaryError(f"tags: {str(error) or type(error).__name__}") from error
    if file is None:
        body.seek(0)
        if not add_sound(body.read(HEAD), found):
            body.seek(0)
            unrecognized.run(facts, body, found)
        found.set("title", facts.name.decode("utf-8", "replace"), 300)
        return
    found.add("format", type(file).__name__.removeprefix("Easy"), 50)
    _measures(file.info, found)
    _tags(file.tags, found)
    if isinstance(file, importlib.import_module("mutagen.smf").SMF):
        body.seek(0)
        add_midi(body.read(INFO), found)
    if isinstance(file, importlib.import_module("mutagen.wave").WAVE):
        body.seek(0)
        add_info(body.read(INFO), found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _id3(body: BinaryIO) -> Any:
    """The tags at the start of a file that ends within its first frame; None if there are none."""
    body.seek(0)
    try:
        return importlib.import_module("mutagen.easyid3").EasyID3(_Counted(body))
    except importlib.import_module("mutagen").MutagenError:
        return None


def _tags(tags: Any, found: Found) -> None:
    """What the tags say; in the order of their names, for some formats have them in none."""
    # Those of Vorbis are a list of pairs that has keys.
    names = tags.keys() if hasattr(tags, "keys") else ()
    for name in sorted(map(str, names))[:200]:
        meant = NAMES.get(name.lower(), "")
        for value in _values(tags, name) if meant else ():
            if meant == "partial-text":
                found.body(squeeze(value))
                continue
            (found.set if meant in ("title", "language", "track") else found.add)(meant, squeeze(value), 1_000)


def _values(tags: Any, name: Any) -> list[str]:
    """The values of a tag, whatever its format has them be."""
    value = tags[name]
    return [str(each) for each in (value if isinstance(value, list) else [value])[:VALUES]]


def _measures(info: Any, found: Found) -> None:
    """Duration, bit rate and sample rate, where they are told."""
    for name, kind, least, most in MEASURES:
        value = getattr(info, name, 0)
        if isinstance(value, int | float) and least <= round(value) <= most:
            found.add(kind, str(round(value)), 20)


SUMMARIZER = Summarizer(
    types=("Audio",),
    run=run,
    modules=("mutagen", *(f"mutagen.{name}" for name in _MODULES)),
)
