"""An image source without files, in a module that helper processes can import too."""

import os
from dataclasses import dataclass

import numpy as np

from labelclean.data.images import ImageError
from labelclean.data.looks import Look


@dataclass
class Made:
    """Pictures without files: odd rows are bad; `elsewhere` is what helpers do before a row."""

    rows: range
    main: int
    elsewhere: str = ""

    def __len__(self):
        return len(self.rows)

    def part(self, start, stop):
        return Made(self.rows[start:stop], self.main, self.elsewhere)

    def inspect(self, row):
        if os.getpid() != self.main and self.elsewhere == "die":
            os._exit(1)
        if os.getpid() != self.main and self.elsewhere == "raise":
            raise KeyError("a mistake of ours")
        number = self.rows[row]
        if number % 2:
            raise ImageError(f"odd row {number}")
        seen = Look(np.full((16, 16), number % 256, np.uint8), np.full(4, number, np.float32))
        return number, os.getpid() != self.main, number.to_bytes(32, "big"), seen
