"""A lock on an open file that ends with the process, however it ends."""

import os
import sys
from typing import BinaryIO

# Windows locks bytes rather than files and keeps others from reading them: take one nobody reads.
_FAR = 0x7FFFFFFE


def lock(file: BinaryIO) -> bool:
    """Take the file for this opener alone; give whether nobody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 (only there)

            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 (not there on Windows)

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        file.seek(0, os.SEEK_END)
    return True
