"""States on disk, named by their content: what clients are made of between lessons."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from calmfed.errors import DataError
from calmfed.snapshot import State, decode, encode

CACHE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class StateRef:
    """The name of a stored state.

    Attributes:
        sha256: Of its bytes.
        nbytes: How many there are; what its transfer would move.
    """

    sha256: str
    nbytes: int

    @property
    def filename(self) -> str:
        """The file that holds it."""
        return f"{self.sha256[:32]}.safetensors"


class StateStore:
    """A folder of states. A file is written once, under the name of its content, and never changed.

    So several processes can share a folder without asking each other: the same name always means
    the same bytes. The most recently used states are kept in memory too.
    """

    def __init__(self, folder: Path, cache_bytes: int = CACHE_BYTES) -> None:
        self.folder = folder
        self._room = cache_bytes
        self._cache: OrderedDict[StateRef, State] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, state: State) -> StateRef:
        """Store a state."""
        data = encode(state)
        ref = StateRef(hashlib.sha256(data).hexdigest(), len(data))
        path = self.folder / ref.filename
        if not path.exists():
            beside = path.with_suffix(f".{os.getpid()}.part")
            beside.write_bytes(data)
            beside.replace(path)
        self._remember(ref, state)
        return ref

    def get(self, ref: StateRef) -> State:
        """A stored state; not to be changed in place."""
        if ref in self._cache:
            self._cache.move_to_end(ref)
            return self._cache[ref]
        state = decode(self._read(ref), str(self.folder / ref.filename))
        self._remember(ref, state)
        return state

    def sync(self, refs: Iterable[StateRef]) -> None:
        """Make sure that these states survive a power cut."""
        for ref in refs:
            with (self.folder / ref.filename).open("rb") as file:
                os.fsync(file.fileno())

    def verify(self, refs: Iterable[StateRef]) -> None:
        """Raise a `DataError` for the first state whose file is missing or has changed."""
        for ref in refs:
            data = self._read(ref)
            if hashlib.sha256(data).hexdigest() != ref.sha256:
                raise DataError(
                    f"{self.folder / ref.filename} is damaged: its hash is wrong; "
                    "this run cannot go on, delete its directory to begin again"
                )

    def sweep(self, keep: Iterable[StateRef]) -> None:
        """Delete every state, whole or half written, that is not to be kept."""
        names = {ref.filename for ref in keep}
        for path in self.folder.iterdir():
            if path.suffix in (".safetensors", ".part") and path.name not in names:
                path.unlink(missing_ok=True)

    def _read(self, ref: StateRef) -> bytes:
        path = self.folder / ref.filename
        try:
            return path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None

    def _remember(self, ref: StateRef, state: State) -> None:
        if ref not in self._cache:
            self._cache[ref] = state
            self._room -= ref.nbytes
        while self._room < 0 and self._cache:
            forgotten, _ = self._cache.popitem(last=False)
            self._room += forgotten.nbytes
