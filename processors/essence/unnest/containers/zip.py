"""zip: the archive as a container. The format itself is read in `formats/zip.py`, for office documents and books too."""

from __future__ import annotations

from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container

UNNESTER = Container(("Zip",), open_zip)
