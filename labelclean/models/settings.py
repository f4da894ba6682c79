"""Which network looks at the pictures: the [model] section of a recipe."""

from dataclasses import dataclass

from labelclean.errors import ConfigError

MODES = ("head", "finetune", "scratch")
"""What of a network is trained."""
ENGINES = ("torch", "onnxruntime")
"""What computes frozen networks."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The backbone and the classifier behind it.

    Args:
        backbone: `lite0` (its weights come with the package), any timm name, `hf-hub:owner/name`,
            `local-dir:/folder`, or `resnet20`, `resnet32`, `resnet44`, `resnet56`,
            `resnet34_cifar`.
        pretrained: Start from the backbone's published weights; always off in scratch mode.
        image_size: Side of the square the network sees, in pixels; None: the backbone's own size,
            or less for small pictures.
        stages: In head mode, how many of the last stages add their pooled output to the features.
        hidden: Units of a hidden layer before the classifier; 0: none; None: 256 in head mode for
            a loss with attention, where a linear attention head cannot separate, else none.
        engine: What computes frozen features: `torch`, or `onnxruntime` (the extra `onnx`), which
            is faster on a CPU and takes some seconds to begin.
        dropout: Share of what the classifier sees that is left out at random while training.
    """

    backbone: str = "lite0"
    pretrained: bool = True
    image_size: int | None = None
    stages: int = 3
    hidden: int | None = None
    dropout: float = 0.0
    engine: str = "torch"

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        if self.image_size is not None and self.image_size < 8:
            raise ConfigError(f"model.image_size is {self.image_size}; it must be at least 8.")
        if self.engine not in ENGINES:
            raise ConfigError(
                f"model.engine is {self.engine!r}; it must be one of {', '.join(ENGINES)}."
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout is {self.dropout}; give 0 or more and less than 1.")
        for name in ("stages", "hidden"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"model.{name} is {value}; it must be 0 or more.")
