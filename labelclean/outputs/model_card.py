"""README.md of a saved model: where it comes from, what it is for, what it cannot do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labelclean.data.manifest import Label

_NAMED = 50


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card states.

    Args:
        data: Name of the data set's file or folder.
        digest: SHA-256 of it.
        classes: The labels in the order of the outputs.
        backbone: Name of the backbone; None: the model takes feature vectors.
        license: Licence of the pretrained weights; None: none were used, or they state none.
        mode: `head`, `finetune` or `scratch`.
        image_size: Side of the input in pixels; None for features.
        loss: Name of the loss.
        rows: Rows trained on.
        counts: Rows by what the audit decided: relabel, review, drop, ...
        noise_rate: Estimated share of wrong labels; None: no estimate.
        corrected: Whether the model was trained on the corrected labels rather than the given.
        decided: Labels among them that a person decided.
        accuracy: Name of a set of rows to the accuracy on it.
        warnings: Sentences a user of the numbers must know.
    """

    data: str
    digest: str
    classes: tuple[Label, ...]
    backbone: str | None
    license: str | None
    mode: str
    image_size: int | None
    loss: str
    rows: int
    counts: Mapping[str, int]
    noise_rate: float | None
    corrected: bool
    decided: int = 0
    accuracy: Mapping[str, float] | None = None
    warnings: Sequence[str] = ()


def model_card(facts: CardFacts) -> bytes:
    """Write the card: YAML front matter as Hugging Face reads it, then Markdown."""
    front = [
        "---",
        "library_name: timm",
        f"license: {_licence(facts)}",
        "tags:",
        "- image-classification" if facts.backbone is not None else "- tabular-classification",
        "- timm" if facts.backbone is not None else "- features",
        "- labelclean",
        "- noisy-labels",
        "---",
    ]
    sections = [
        front,
        ["", f"# Classifier of {_plain(facts.data)}", "", _what(facts)],
        ["", "## Labels", "", *_labels(facts)],
        ["", "## Use", "", *_use(facts)],
        ["", "## Accuracy", "", *_accuracy(facts)],
        ["", "## Limits", "", *_limits(facts)],
        ["", "## Classes", "", *_classes(facts.classes)],
    ]
    lines = [line for section in sections for line in section]
    return ("\n".join(lines) + "\n").encode("utf-8", errors="replace")


def _licence(facts: CardFacts) -> str:
    # `other` is Hugging Face's word for a licence that has no name there.
    return json.dumps(facts.license) if facts.license else "other"


def _plain(text: str) -> str:
    """Keep foreign text from becoming Markdown, HTML or a new line."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!&$~" else letter for letter in printable)


def _code(text: str) -> str:
    """Show foreign text as code, where nothing but its end has a meaning."""
    return "`" + "".join(c if c.isprintable() and c != "`" else "?" for c in text) + "`"


def _what(facts: CardFacts) -> str:
    if facts.backbone is None:
        return f"A head on feature vectors, trained with the loss `{facts.loss}`."
    built = {
        "head": f"A head on the frozen backbone {_code(facts.backbone)}",
        "finetune": f"The network {_code(facts.backbone)}, fine-tuned",
        "scratch": f"The network {_code(facts.backbone)}, trained from random weights",
    }[facts.mode]
    return (
        f"{built} for square pictures of {facts.image_size} pixels, trained with the loss "
        f"`{facts.loss}` by labelclean."
    )


def _labels(facts: CardFacts) -> list[str]:
    counts = facts.counts
    rate = "no estimate" if facts.noise_rate is None else f"{facts.noise_rate:.1%}"
    lines = [
        f"The labels were audited by a machine. Estimated share of wrong labels: {rate}. The audit "
        f"relabelled {counts.get('relabel', 0)} rows, left {counts.get('review', 0)} to a person, "
        f"dropped {counts.get('drop', 0)} and could not read {counts.get('unreadable', 0)}.",
        "",
    ]
    if facts.corrected:
        lines.append(
            f"This model was trained on {facts.rows} rows with the corrected labels; a person "
            f"decided {facts.decided} of them, no person looked at the others."
        )
    else:
        lines.append(
            f"This model was trained on {facts.rows} rows with the labels as given, before any "
            "correction; the loss is what withstands the wrong ones. `labelclean retrain` trains "
            "on the corrected labels."
        )
    return [*lines, "", f"SHA-256 of the data: `{facts.digest}`"]


def _use(facts: CardFacts) -> list[str]:
    seen = "pictures" if facts.backbone is not None else "feature vectors (`X` of an .npz)"
    return [
        "```",
        "labelclean predict RUN new.csv",
        "```",
        "",
        f"RUN is the folder above this one; the input is a table of {seen}. `config.json` says how "
        "a picture is prepared and which output is which label."
        if facts.backbone is not None
        else f"RUN is the folder above this one; the input holds {seen}.",
    ]


def _accuracy(facts: CardFacts) -> list[str]:
    if not facts.accuracy:
        return ["Not measured: the data had no held-out rows."]
    lines = [f"- {_plain(name)}: {value:.1%}" for name, value in facts.accuracy.items()]
    return lines + [f"\n{_plain(sentence)}" for sentence in facts.warnings]


def _limits(facts: CardFacts) -> list[str]:
    limits = [
        "Accuracy was measured against labels that may themselves be wrong, unless stated.",
        "The probabilities are those of the network and were not calibrated for new data.",
        "A picture of none of the classes still gets one of them.",
        "Audited labels are not verified labels: errors that look right to the model remain.",
    ]
    if facts.backbone is not None and facts.license is None:
        limits.append(
            "No licence is stated for the weights; ask their owner before passing them on."
        )
    return [f"- {sentence}" for sentence in limits]


def _classes(classes: tuple[Label, ...]) -> list[str]:
    lines = [f"{place}. {_plain(str(name))}" for place, name in enumerate(classes[:_NAMED])]
    if len(classes) > _NAMED:
        lines.append(f"\nand {len(classes) - _NAMED} more; see `config.json`")
    return lines
