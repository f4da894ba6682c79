"""run.json: what was run, on what, with which result; written last, it marks success."""

import platform
from datetime import UTC, datetime
from importlib import metadata

import numpy as np

from labelclean import __version__
from labelclean.correction.kinds import count_findings
from labelclean.correction.outlook import outlook
from labelclean.correction.result import Audit
from labelclean.data.manifest import Manifest

RUN_SCHEMA = 3
_PACKAGES = ("torch", "torchvision", "timm", "scikit-learn", "pandas", "pyarrow", "numpy", "pillow")


def run_facts(audit: Audit) -> dict[str, object]:
    """Give the content of run.json as plain data."""
    rate, noise = audit.noise_rate, audit.noise
    manifest = audit.manifest
    return {
        "schema_version": RUN_SCHEMA,
        "tool": f"labelclean {__version__}",
        "input": {"name": manifest.source.name, "digest": manifest.digest, "rows": len(manifest)},
        "classes": list(manifest.classes),
        "columns": {"image": manifest.image_col, "label": manifest.label_col},
        "counts": audit.counts(),
        "findings": count_findings(audit.beside, audit.unknown) if audit.beside else None,
        "noise_rate": None if rate is None else round(rate, 6),
        "noise_rate_interval": [round(bound, 6) for bound in audit.noise_interval],
        "class_noise": _class_noise(audit, manifest),
        "noise_transition": None if noise is None else np.round(noise.transition, 6).tolist(),
        "diagnosis": list(audit.diagnosis),
        "outlook": outlook(audit),
        "answers": None if audit.answers is None else dict(audit.answers),
        "signal_quality": {name: dict(values) for name, values in audit.quality.items()},
        **audit.facts,
        **provenance(),
    }


def provenance() -> dict[str, object]:
    """Say with which versions, when and where something ran."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "ran": {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "system": platform.platform(),
        },
    }


def _class_noise(audit: Audit, manifest: Manifest) -> list[dict[str, object]]:
    if audit.noise is None:
        return []
    rates = zip(manifest.classes, audit.noise.class_rate, audit.noise.class_interval, strict=True)
    return [
        {
            "label": name,
            "noise_rate": None if np.isnan(rate) else round(float(rate), 6),
            "interval": [round(float(bound), 6) for bound in interval],
        }
        for name, rate, interval in rates
    ]


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}
