"""How samples are found and read: the [data] section of a recipe."""

from dataclasses import dataclass, replace

from labelclean.data.budget import Budget
from labelclean.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Where labels and pictures are, and the caps a single picture must stay under.

    Args:
        image_col: Column with the image path or bytes; None: the first known name present.
        label_col: Column with the label; None: the first known name present.
        image_root: Folder relative paths start from; None: the manifest's own folder.
        allow_outside_root: Accept paths that leave the root.
        limit: Read only so many rows: the first ones, or an even part of rows that stand class by
            class; None: all.
        audit_split: Audit rows of this split although it is held out; None: none.
        workers: Processes that decode images; None: as many as there are cores; 0: none.
        max_bytes: Largest encoded image accepted, in bytes.
        max_pixels: Largest picture accepted, in pixels.
        budget: Multiple of what a table may claim before it is read: 5 million rows, 10,000
            columns, values nested 64 deep, 4 GiB where that is many times its size on the disk.
    """

    image_col: str | None = None
    label_col: str | None = None
    image_root: str | None = None
    allow_outside_root: bool = False
    limit: int | None = None
    audit_split: str | None = None
    workers: int | None = None
    max_bytes: int = 64 * 2**20
    max_pixels: int = 50_000_000
    budget: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name in ("limit", "max_bytes", "max_pixels"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"data.{name} is {value}; it must be at least 1.")
        Budget(self.budget)
        if self.workers is not None and self.workers < 0:
            raise ConfigError(f"data.workers is {self.workers}; it must be 0 or more.")

    def for_other_data(self) -> "DataSettings":
        """Keep what holds for any data (processes and caps); forget columns, folders and splits."""
        return replace(
            self,
            image_col=None,
            label_col=None,
            image_root=None,
            allow_outside_root=False,
            limit=None,
            audit_split=None,
        )
