"""Files that settings name: secrets, CAs, certificates with their keys. Read or tried when the settings are loaded.

No error shows what is in a file.
"""

from __future__ import annotations

import os
import stat

from streams.config.base import mistake

MAX_SECRET = 65_536
"""Maximum number of bytes of a file with a secret."""


def read_secret(path: str) -> str:
    """Return the text of a file without its trailing newline. Raises PydanticCustomError, which names the file."""
    try:
        # Without waiting for a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise mistake(f"{path}: not a file")
            content = stream.read(MAX_SECRET + 1)
    except OSError as error:
        raise mistake(f"{path}: {error.strerror}") from None
    text = content.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
    if not text or len(content) > MAX_SECRET or "\ufffd" in text or "\0" in text:
        raise mistake(f"{path}: empty, no text (UTF-8), or too long for a secret")
    return text


def check_readable(path: str, name: str) -> None:
    """Check that a file can be read; `name`: its setting. Raises PydanticCustomError."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            stream.read(1)
    except OSError as error:
        raise mistake(f"{path}: {error.strerror}", name) from None


def check_ca(path: str, name: str) -> None:
    """Check that a file has certificates in PEM; `name`: its setting. Raises PydanticCustomError."""
    import ssl  # noqa: PLC0415 - few settings name certificates

    check_readable(path, name)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, ValueError):
        raise mistake(f"{path}: has no certificate in PEM", name) from None


def check_pair(certificate: str, key: str, password: str, names: tuple[str, str, str]) -> None:
    """Check that a key can be read, and matches a certificate. Raises PydanticCustomError.

    `names`: the settings of certificate, key and password.
    """
    import ssl  # noqa: PLC0415

    check_readable(certificate, names[0])
    check_readable(key, names[1])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(certificate)
    except (ssl.SSLError, ValueError):
        raise mistake(f"{certificate}: has no certificate in PEM", names[0]) from None
    asked = []

    def give() -> str:
        # Without it OpenSSL would ask at the terminal.
        asked.append(True)
        return password

    try:
        context.load_cert_chain(certificate, key, give)
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise mistake(f"{key}: does not match the certificate {certificate}", names[1]) from None
        if asked:
            raise mistake(f"the key {key} is encrypted, and this is not its password", names[2]) from None
        raise mistake(f"{key}: has no private key in PEM", names[1]) from None
