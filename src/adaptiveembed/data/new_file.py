"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which has its name only when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        partial.chmod(0o644)
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
