"""`labelclean losses`: the catalogue as a table, or one loss explained."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labelclean.cli.listing import (
    Facts,
    parse_parameter,
    settings_text,
    table_text,
    value_text,
)
from labelclean.errors import ConfigError

if TYPE_CHECKING:
    from labelclean.losses.base import RobustLoss

_COLUMNS = ("name", "parameters", "focus", "symmetric", "bounded", "memory", "paper")


@click.command(short_help="List the losses, or explain one.")
@click.argument("name", required=False)
@click.option("--set", "settings", multiple=True, metavar="P=V", help="Set a parameter.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw its weights.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(name: str | None, settings: tuple[str, ...], plot: Path | None, as_json: bool) -> None:
    """List the losses, or explain the loss NAME: formula, settings, focus, spread, weight curve."""
    from labelclean.losses import LOSSES, build

    if name is None:
        if settings or plot:
            raise ConfigError("--set and --plot need the name of a loss: labelclean losses NAME.")
        table = [_facts(each, build(each), {}) for each in LOSSES]
        click.echo(json.dumps(table, indent=2) if as_json else table_text(table, _COLUMNS))
        return
    params = dict(parse_parameter(text) for text in settings)
    loss = build(name, **params)
    facts = _facts(name, loss, params)
    if plot is not None:
        _draw(plot, name, loss, settings_text(facts["parameters"]))
    click.echo(json.dumps(facts, indent=2) if as_json else _explain(facts))


def _facts(name: str, loss: "RobustLoss", params: Facts) -> Facts:
    from labelclean.losses import LOSSES

    return {
        "name": name,
        "idea": dict(LOSSES.describe())[name],
        "parameters": LOSSES.parameters(name) | params,
        "paper": loss.paper,
        "formula": loss.formula,
        "focus": loss.focus(),
        "spread": loss.spread(),
        "symmetric": loss.symmetric,
        "bounded": loss.bounded,
        "memory": loss.memory_shape,
        "signals": list(loss.signals),
        "warmup_loss": loss.warmup_loss,
        "warmup_fraction": loss.warmup_fraction,
        "advice": [list(pair) for pair in loss.advice],
    }


def _explain(facts: Facts) -> str:
    lines = [f"{facts['name']}: {facts['idea']}", ""]
    lines += [f"  {facts['formula']}", f"  paper       {facts['paper']}"]
    lines.append(f"  parameters  {settings_text(facts['parameters']) or 'none'}")
    for key in ("focus", "spread", "symmetric", "bounded", "memory"):
        lines.append(f"  {key:<11} {value_text(facts[key])}")
    signals = facts["signals"]
    lines.append(f"  signals     {', '.join(signals) if isinstance(signals, list) else ''}")
    if facts["warmup_loss"]:
        lines.append(
            f"  warm-up     {facts['warmup_loss']}, {facts['warmup_fraction']:.0%} of the epochs"
        )
    advice = facts["advice"]
    if isinstance(advice, list) and advice:
        lines += ["", "Settings from the papers:"]
        width = max(len(situation) for situation, _ in advice)
        lines += [f"  {situation:<{width}}  {settings}" for situation, settings in advice]
    return "\n".join(lines)


def _draw(path: Path, name: str, loss: "RobustLoss", settings: str) -> None:
    from labelclean.losses.curves import weight_figure

    figure = weight_figure(name, loss, settings)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--plot {str(path)!r} must end in .png, .svg or .pdf.")
    figure.savefig(path, dpi=150)
    click.echo(f"wrote {path}", err=True)
