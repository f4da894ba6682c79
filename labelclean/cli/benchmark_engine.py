"""`labelclean benchmark engine`: extraction, cache, processes and restarts, measured."""

import json
from dataclasses import asdict

import click


@click.command(short_help="Measure extraction, cache, processes and restarts.")
@click.argument("manifest")
@click.option("--size", type=click.IntRange(min=32), default=96, show_default=True)
@click.option("--backbone", default="lite0", show_default=True)
@click.option("--limit", type=click.IntRange(min=4), help="Use only the first N rows.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--kills", type=click.IntRange(min=0), default=10, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Threads for the arithmetic.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the moments.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(
    *,
    manifest: str,
    size: int,
    backbone: str,
    limit: int | None,
    rounds: int,
    kills: int,
    threads: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Measure the engine on the pictures of MANIFEST, on a CPU.

    Extraction is timed beside the bare forward pass of the same tuned network on pictures in
    memory, and beside a plain loop (DataLoader, eval, no_grad, batches of 64). Ratios are medians
    over rounds in which all three take turns.
    """
    from labelclean.benchmark.engine import measure_engine
    from labelclean.benchmark.extraction import ExtractionCase

    case = ExtractionCase(manifest, limit, backbone, size, threads)
    findings = []
    for finding in measure_engine(case, rounds=rounds, kills=kills, seed=seed):
        findings.append(finding)
        if not as_json:
            verdict = "" if finding.kept else "  MISSED"
            click.echo(f"{finding.name:<52} {finding.value:12.6g}  {finding.limit:<9}{verdict}")
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
