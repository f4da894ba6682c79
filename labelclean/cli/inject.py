"""`labelclean inject`: plant known label noise in a manifest."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.options import Shared, hold_target, shared_options, wait_option
from labelclean.errors import ConfigError

if TYPE_CHECKING:
    from labelclean.data.manifest import Manifest

# Which noise a flag belongs to; a flag that would be ignored is refused instead.
BELONGS = {
    "--variant": ("symmetric", "asymmetric", "instance"),
    "--map": ("asymmetric", "matrix"),
    "--superclass": ("asymmetric",),
    "--second": ("openset",),
    "--open-fraction": ("openset",),
    "--probs": ("instance",),
}
NOISE = ("symmetric", "asymmetric", "pairflip", "instance", "openset", "matrix")


@click.command("inject")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--noise", type=click.Choice(NOISE), required=True, help="Kind of noise.")
@click.option("--rate", type=float, help="Flip probability of an affected sample, 0 to 1.")
@click.option(
    "--variant",
    help="symmetric: other (default) or any class; asymmetric, in groups of classes: circular, "
    "swap, uniform; instance: parts, single, confidence, pmd1, pmd2, pmd3.",
)
@click.option(
    "--map",
    "map_file",
    help="asymmetric: pairs of classes (.json, .csv, .tsv), or for class ids cifar10, cifar100, "
    "mnist; matrix: P(noisy | true) (.npy, .csv, .tsv), which states the rates itself.",
)
@click.option(
    "--superclass",
    type=click.Choice(["true", "blocks"]),
    help="CIFAR-100: the true superclasses (default), or five consecutive ids as in some papers.",
)
@click.option(
    "--second", type=click.Path(path_type=Path), help="openset: manifest of the foreign pictures."
)
@click.option(
    "--open-fraction", type=float, help="openset: share of foreign pictures in it; default 1."
)
@click.option(
    "--probs",
    type=click.Path(path_type=Path),
    help="instance: .npy with a probability for each row and class, classes in sorted order.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@wait_option
@shared_options
def command(
    *,
    manifest: Path,
    noise: str,
    rate: float | None,
    variant: str | None,
    map_file: str | None,
    superclass: str | None,
    second: Path | None,
    open_fraction: float | None,
    probs: Path | None,
    out: Path,
    wait: bool,
    shared: Shared,
) -> None:
    """Plant known label noise in MANIFEST.

    The label column of the written file is noisy, the truth stands in the column true_label, and
    FILE.noise.json says which rows were changed and how. Rows of the splits test and val and
    verified rows keep their labels.
    """
    flags: dict[str, object] = {
        "--variant": variant,
        "--map": map_file,
        "--superclass": superclass,
        "--second": second,
        "--open-fraction": open_fraction,
        "--probs": probs,
    }
    _check_usage(noise, rate, flags, manifest, out)
    hold_target(out, "inject", wait)
    from labelclean.atomic import write_bytes
    from labelclean.benchmark.planting import plant
    from labelclean.data.write import write_manifest

    samples = _read(manifest, shared)
    foreign = None if second is None else _read_foreign(second, shared)
    options = _options(noise, flags, samples, shared)
    # A matrix states its own rates.
    planted = plant(samples, noise, 1.0 if rate is None else rate, shared.seed, options, foreign)
    named = {flag.lstrip("-"): _plain(value) for flag, value in flags.items() if value is not None}
    record = {**planted.record, "options": named}
    write_manifest(planted.manifest, out)
    write_bytes(record_path(out), (json.dumps(record, ensure_ascii=False) + "\n").encode())
    if shared.as_json:
        click.echo(json.dumps(record, ensure_ascii=False))
    else:
        click.echo(
            f"{out}: {record['flipped']} of {record['eligible_rows']} labels made wrong "
            f"({planted.injection.actual_rate:.1%}; asked for {planted.injection.nominal_rate:.1%} "
            f"of affected samples), truth in column {record['truth_col']}, mask in "
            f"{record_path(out).name}"
        )


def record_path(out: Path) -> Path:
    """Give the name of the file that says what was planted."""
    return out.with_name(f"{out.name}.noise.json")


def _check_usage(
    noise: str, rate: float | None, flags: dict[str, object], manifest: Path, out: Path
) -> None:
    """Refuse what cannot work before anything is read; all faults in one message."""
    faults = [
        f"{flag} belongs to --noise {' or '.join(BELONGS[flag])}"
        for flag, value in flags.items()
        if value is not None and noise not in BELONGS[flag]
    ]
    if rate is None and noise != "matrix":
        faults.append("--rate is missing")
    needed = {"openset": "--second", "matrix": "--map"}.get(noise)
    if needed is not None and flags[needed] is None:
        faults.append(f"{needed} is missing")
    if out.suffix == "" or out.is_dir():
        faults.append(f"--out {out} names a folder, which has no place for the truth; name a file")
    elif out.exists() and manifest.exists() and out.samefile(manifest):
        faults.append(f"--out {out} is the input; the clean labels would be lost")
    if faults:
        raise ConfigError(f"--noise {noise}: {'; '.join(faults)}.")


def _read(path: Path, shared: Shared) -> "Manifest":
    from labelclean.data.read import read_manifest

    return read_manifest(
        path,
        image_col=shared.image_col,
        label_col=shared.label_col,
        image_root=shared.image_root,
        allow_outside_root=shared.allow_outside_root,
        limit=shared.limit,
        budget=shared.budget or 1.0,
    )


def _read_foreign(path: Path, shared: Shared) -> "Manifest":
    from labelclean.data.read import read_manifest

    return read_manifest(
        path,
        image_col=shared.image_col,
        allow_outside_root=shared.allow_outside_root,
        need_labels=False,
        budget=shared.budget or 1.0,
    )


def _options(
    noise: str, flags: dict[str, object], samples: "Manifest", shared: Shared
) -> dict[str, object]:
    """Give the protocol's parameters from the flags and the samples."""
    from labelclean.benchmark import class_maps, map_files
    from labelclean.benchmark.instance_noise import PROBABILITY_VARIANTS
    from labelclean.benchmark.noise import NOISES

    known = NOISES.parameters(noise)
    named = {flag.lstrip("-").replace("-", "_"): value for flag, value in flags.items()}
    options = {key: value for key, value in named.items() if key in known and value is not None}
    chart = None if named["map"] is None else Path(str(named["map"]))
    if noise == "asymmetric":
        options["classes"] = samples.classes
        if chart is not None and (str(chart) not in class_maps.BUILTIN_MAPS or chart.exists()):
            options["mapping"] = map_files.read_pairs(chart)
        elif chart is not None:
            options["mapping"] = str(chart)
    elif noise == "matrix" and chart is not None:
        options["transition"] = map_files.read_transition(chart, samples.classes)
    elif noise == "instance":
        if "probs" in options:
            options["probs"] = map_files.load_array(Path(str(options["probs"])))
        if options.get("variant", known["variant"]) not in PROBABILITY_VARIANTS:
            options["features"] = _features(samples, shared)
    return options


def _features(samples: "Manifest", shared: Shared) -> object:
    from tqdm import tqdm

    from labelclean.benchmark.planting import pixel_features

    if not samples.has_images:
        return samples.arrays
    rows = tqdm(range(len(samples)), desc="pictures", disable=shared.quiet or None, leave=False)
    return pixel_features(samples, rows)


def _plain(value: object) -> object:
    return value.name if isinstance(value, Path) else value
