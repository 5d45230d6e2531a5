"""The raw bytes of sources in a store: pieces of a few megabytes, compressed, and encrypted on request.

A piece is one zstd frame, or that frame sealed with AES-256-GCM: 12 random bytes, then cipher text and tag. What is
authenticated beside it is the hash of the source that it was written for and its place there, so that pieces cannot be
exchanged. The key is scrypt (n 2^15, r 8, p 1) of a passphrase and the store's salt; the passphrase is kept nowhere.
Not hidden: names, sizes, and the hashes of the sources.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec
import zstandard

from postgrad.core.errors import ConfigError, DataError, MissingDependency

RawMode = Literal["keep", "encrypt", "drop"]
PASSPHRASE = "POSTGRAD_PASSPHRASE"
PIECE = 4 << 20
_NONCE = 12
_CHECK = b"postgrad"


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Where a piece of a source lies: file below `raw/`, first byte and length there, and its uncompressed size.

    `origin` is the beginning of the hash of the source that it was written for: a source that grew keeps its pieces.
    """

    file: str
    offset: int
    length: int
    size: int
    origin: str


class Lock(msgspec.Struct, frozen=True):
    """What a store remembers of its passphrase: the salt, and a sealed word that only the right key opens."""

    salt: str
    check: str


@dataclass(frozen=True)
class Key:
    """A 256-bit key."""

    secret: bytes

    def __repr__(self) -> str:
        return "Key(...)"

    @classmethod
    def create(cls, passphrase: str) -> tuple[Key, Lock]:
        """The key of a new store and what the store keeps to know it again."""
        salt = os.urandom(16)
        key = cls(_derived(passphrase, salt))
        check = key.seal(_CHECK, b"check")
        return key, Lock(base64.b64encode(salt).decode(), base64.b64encode(check).decode())

    @classmethod
    def of(cls, passphrase: str, lock: Lock) -> Key:
        """The key of a store that has one.

        Raises:
            DataError: the passphrase is not the one that the store was made with.
        """
        key = cls(_derived(passphrase, base64.b64decode(lock.salt)))
        if key.open(base64.b64decode(lock.check), b"check") != _CHECK:
            raise DataError("wrong passphrase: it does not open this store", do=f"see {PASSPHRASE}")
        return key

    def seal(self, data: bytes, about: bytes) -> bytes:
        """Encrypt."""
        nonce = os.urandom(_NONCE)
        return nonce + bytes(_cipher(self.secret).encrypt(nonce, data, about))

    def open(self, data: bytes, about: bytes) -> bytes | None:
        """Decrypt; None if the key is another, or the data was changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(_cipher(self.secret).decrypt(data[:_NONCE], data[_NONCE:], about))
        except InvalidTag:
            return None


def _cipher(secret: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingDependency("cryptography", extra="encrypt") from None
    return AESGCM(secret)


def _derived(passphrase: str, salt: bytes) -> bytes:
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=1 << 15, r=8, p=1, maxmem=64 << 20, dklen=32)


def ask_passphrase(*, new: bool) -> str:
    """The passphrase from the environment, else from the person at the terminal.

    Raises:
        ConfigError: neither is there, it is empty, or two new ones differ.
    """
    found = os.environ.get(PASSPHRASE)
    if found is None and sys.stdin.isatty():
        found = getpass.getpass("passphrase of the raw layer: ", stream=sys.stderr)
        if new and found != getpass.getpass("once more: ", stream=sys.stderr):
            raise ConfigError("the two passphrases differ")
    if not found:
        raise ConfigError("the raw layer needs a passphrase", do=f"set {PASSPHRASE}, or run it in a terminal")
    return found


class PieceWriter:
    """Appends the pieces of one source after the other to one file."""

    def __init__(self, path: Path, name: str, key: Key | None) -> None:
        self._path, self._name, self._key = path, name, key
        self._file: BinaryIO | None = None
        self._packer = zstandard.ZstdCompressor(level=3)

    def write(self, blocks: Iterable[bytes], sha256: str, *, first: int = 0) -> list[Piece]:
        """Add the bytes of a source; `first` is the number of its pieces that are stored already."""
        return [self._piece(block, sha256[:16], number) for number, block in enumerate(blocks, first)]

    @property
    def place(self) -> int:
        """Bytes written so far."""
        return self._file.tell() if self._file else 0

    def cut(self, place: int) -> None:
        """Forget what was written after `place`."""
        if self._file:
            self._file.truncate(place)
            self._file.seek(place)

    def close(self) -> bool:
        """Flush to disk; True if there is a file."""
        if self._file is None:
            return False
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return True

    def _piece(self, block: bytes, origin: str, number: int) -> Piece:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
        data = self._packer.compress(block)
        data = self._key.seal(data, _about(origin, number)) if self._key else data
        piece = Piece(self._name, self._file.tell(), len(data), len(block), origin)
        self._file.write(data)
        return piece


def read_pieces(folder: Path, pieces: Iterable[Piece], key: Key | None) -> Iterator[bytes]:
    """The bytes of a source, piece by piece.

    Raises:
        DataError: a piece is gone or was changed.
    """
    for number, piece in enumerate(pieces):
        try:
            with (folder / piece.file).open("rb") as file:
                file.seek(piece.offset)
                data: bytes | None = file.read(piece.length)
            data = key.open(data or b"", _about(piece.origin, number)) if key else data
            if data is None:
                raise DataError("the raw layer is damaged: the seal does not fit", got=str(folder / piece.file))
            yield zstandard.ZstdDecompressor().decompress(data, max_output_size=piece.size)
        except FileNotFoundError:
            raise DataError("a file of the store's raw layer is gone", got=str(folder / piece.file)) from None
        except zstandard.ZstdError as error:
            raise DataError(f"the raw layer is damaged: {error}", got=str(folder / piece.file)) from None


def _about(origin: str, number: int) -> bytes:
    return f"postgrad raw {origin} {number}".encode()
