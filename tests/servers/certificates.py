"""Certificates of a test: a CA, and what it signs, as PEM files in a folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A CA, which signs certificates for 127.0.0.1 or for names."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=0))
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, host: str = "127.0.0.1", password: bytes = b"", days: float = 1) -> tuple[Path, Path]:
        """Return the files of a certificate and its key (PKCS#8), valid for some `days`; `password` encrypts the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        other = ipaddress.ip_address(host) if host[0].isdigit() else None
        names = x509.SubjectAlternativeName([x509.IPAddress(other) if other else x509.DNSName(host)])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        paths = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        paths[0].write_bytes(self._signed(subject, key.public_key(), names, days).public_bytes(serialization.Encoding.PEM))
        cipher = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, cipher))
        return paths

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, more: x509.ExtensionType, days: float = 1
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        made = x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
        made = made.not_valid_before(now - dt.timedelta(days=9)).not_valid_after(now + dt.timedelta(days=days))
        return made.add_extension(more, critical=False).sign(self._key, hashes.SHA256())
