"""What cleanvision makes of pictures, all in one folder and each alone; JSON on standard output.

Needs nothing but cleanvision, so that it can live in an environment of its own:
`PYTHON tests/hostile_corpus/cleanvision_alone.py FOLDER`.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

from cleanvision import Imagelab


def look(**where: object) -> str:
    """Give "" where it goes through, else what it raised."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            Imagelab(**where).find_issues(n_jobs=1, verbose=False)
    except Exception as error:  # whatever it raises is the finding
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:80]}"
    return ""


def main() -> None:
    """Look at every picture below the folder that is named."""
    folder = Path(sys.argv[1])
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    alone = {str(path.relative_to(folder)): look(filepaths=[str(path)]) for path in paths}
    found = {"together": look(data_path=str(folder)), "alone": alone}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
