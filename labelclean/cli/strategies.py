"""`labelclean strategies`: the catalogue as a table, or one strategy explained."""

import inspect
import json

import click

from labelclean.cli.listing import Facts, parse_parameter, settings_text, table_text
from labelclean.errors import ConfigError

_COLUMNS = ("name", "parameters", "networks", "changes", "memory", "cost", "paper")


@click.command(short_help="List the training strategies, or explain one.")
@click.argument("name", required=False)
@click.option("--set", "settings", multiple=True, metavar="P=V", help="Set a parameter.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(name: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """List the strategies, or explain the strategy NAME: idea, formula, parameters, paper."""
    from labelclean.strategies import STRATEGIES

    if name is None:
        if settings:
            raise ConfigError("--set needs the name of a strategy: labelclean strategies NAME.")
        table = [_facts(each, {}) for each in STRATEGIES]
        click.echo(json.dumps(table, indent=2) if as_json else table_text(table, _COLUMNS))
        return
    facts = _facts(name, dict(parse_parameter(text) for text in settings))
    click.echo(json.dumps(facts, indent=2) if as_json else _explain(facts))


def _facts(name: str, params: Facts) -> Facts:
    from labelclean.strategies import STRATEGIES

    strategy = STRATEGIES.build(name, **params)
    idea, _, about = (inspect.getdoc(type(strategy)) or "").partition("\n")
    return {
        "name": name,
        "idea": idea,
        "about": about.strip(),
        "parameters": STRATEGIES.parameters(name) | params,
        "paper": strategy.paper,
        "formula": strategy.formula,
        "networks": strategy.networks,
        "changes": ", ".join(sorted(strategy.changes)),
        "memory": strategy.memory_shape,
        "cost": strategy.cost,
        "advice": [list(pair) for pair in strategy.advice],
    }


def _explain(facts: Facts) -> str:
    lines = [f"{facts['name']}: {facts['idea']}", "", f"  {facts['formula']}"]
    lines.append(f"  paper       {facts['paper']}")
    lines.append(f"  parameters  {settings_text(facts['parameters']) or 'none'}")
    lines.append(f"  networks    {facts['networks']}")
    lines.append(f"  changes     {facts['changes'] or 'nothing'}")
    lines.append(f"  memory      {facts['memory'] or '-'}")
    lines.append(f"  time        {facts['cost']:g} times that of plain training")
    advice = facts["advice"]
    if isinstance(advice, list) and advice:
        lines += ["", "Settings from the papers:"]
        width = max(len(situation) for situation, _ in advice)
        lines += [f"  {situation:<{width}}  {settings}" for situation, settings in advice]
    return "\n".join([*lines, "", str(facts["about"])])
