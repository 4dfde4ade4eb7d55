"""Sound: title, artist, album and the like from tags, duration (ID3, Vorbis comments, MP4, RIFF, AIFF, ASF).

mutagen reads the tags; `_sounds` reads some formats that it does not support, and all others are summarized as Unrecognized.
mutagen reads through a file with bounds: a tag may claim the size of the file, and a chain of pages may go through all of it.
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
"""Maximum bytes that are read altogether."""
MAX_READS = 50_000
INFO = 65_536
"""Bytes of WAV and MIDI that are searched for metadata before the sound."""
HEAD = 4_096
"""Bytes that are read of a format that mutagen does not support."""
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
"""mutagen's measures, their attributes, and the plausible range: of Windows Media video mutagen may read the picture's values."""
_LATE = "mp3 trueaudio oggtheora oggspeex oggvorbis oggflac flac aiff apev2 mp4 easyid3 easymp4 id3 wavpack musepack monkeysaudio"
_MODULES = (*f"{_LATE} optimfrog asf oggopus aac ac3 smf tak dsf dsdiff wave".split(),)


class _Counted:
    """A file that stops its reader when too much of it is read."""

    def __init__(self, body: BinaryIO, name: bytes = b"") -> None:
        self.body = body
        self.left = MAX_READ
        self.reads = 0
        self.seek = body.seek
        self.tell = body.tell
        # mutagen recognizes formats without a signature by name.
        self.name = name.decode("utf-8", "replace")

    def read(self, size: int = -1) -> bytes:
        """Read at most the bytes that remain. Raises SummaryError if there are none."""
        self.reads += 1
        if self.left <= 0 or self.reads > MAX_READS:
            raise SummaryError("the tags exceed the bytes or reads that are allowed")
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
    """Return the tags at the start of a file that ends within its first frame; None if there are none."""
    body.seek(0)
    try:
        return importlib.import_module("mutagen.easyid3").EasyID3(_Counted(body))
    except importlib.import_module("mutagen").MutagenError:
        return None


def _tags(tags: Any, found: Found) -> None:
    """Add the tags, sorted by name, since some formats have no order."""
    # Vorbis comments are a list of pairs that also has `keys`.
    names = tags.keys() if hasattr(tags, "keys") else ()
    for name in sorted(map(str, names))[:200]:
        meant = NAMES.get(name.lower(), "")
        for value in _values(tags, name) if meant else ():
            if meant == "partial-text":
                found.body(squeeze(value))
                continue
            (found.set if meant in ("title", "language", "track") else found.add)(meant, squeeze(value), 1_000)


def _values(tags: Any, name: Any) -> list[str]:
    """Return the values of a tag as text, whatever their type."""
    value = tags[name]
    return [str(each) for each in (value if isinstance(value, list) else [value])[:VALUES]]


def _measures(info: Any, found: Found) -> None:
    """Add duration, bit rate, sample rate and channels, if they are plausible."""
    for name, kind, least, most in MEASURES:
        value = getattr(info, name, 0)
        if isinstance(value, int | float) and least <= round(value) <= most:
            found.add(kind, str(round(value)), 20)


SUMMARIZER = Summarizer(
    types=("Audio",),
    run=run,
    modules=("mutagen", *(f"mutagen.{name}" for name in _MODULES)),
)
