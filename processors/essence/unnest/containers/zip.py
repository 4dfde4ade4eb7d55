"""zip archives as a container. `formats/zip.py` reads the format itself, for office documents and books too."""

from __future__ import annotations

from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container

UNNESTER = Container(("Zip",), open_zip)
