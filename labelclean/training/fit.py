"""From readable samples to a trained model and its Records, in any mode."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from labelclean.errors import ConfigError
from labelclean.losses import RobustLoss
from labelclean.models.backbones import Backbone, build_backbone
from labelclean.models.head import FeatureScaling
from labelclean.models.settings import ModelSettings
from labelclean.options import OnProgress, OpenProgress, in_rows, no_progress
from labelclean.records.recorder import Recorder, in_memory
from labelclean.strategies import Plain, Strategy
from labelclean.training.cache import FeatureCache
from labelclean.training.checkpoint import Checkpoints, mapped
from labelclean.training.features import Extractor, make_extractor
from labelclean.training.inference import Watch, embed, predict_probs, watched
from labelclean.training.inputs import feature_inputs, picture_inputs, sample_weights
from labelclean.training.left_out import LeftOut
from labelclean.training.loop import train
from labelclean.training.network import head_of_features, whole_network
from labelclean.training.runtime import Runtime, one_thread_each
from labelclean.training.samples import Fitted, Samples
from labelclean.training.settings import TrainSettings
from labelclean.training.task import Features, Inputs, Subset, Task, current_targets

InputChange = Callable[[Inputs], Inputs]


class Fitter:
    """Builds what a mode needs and trains.

    Args:
        samples: What to train on.
        model: The [model] settings.
        training: Resolved settings.
        runtime: Where to compute.
        decoders: Threads that decode ahead.
        cache: Folder of the feature cache.
        workspace: Folder for checkpoints and large arrays; None: neither.
        strategy: Gives a new strategy for every training.
    """

    def __init__(
        self,
        samples: Samples,
        model: ModelSettings,
        training: TrainSettings,
        runtime: Runtime,
        *,
        decoders: int,
        cache: Path,
        workspace: Path | None,
        strategy: Callable[[], Strategy] = Plain,
    ) -> None:
        self.strategy = strategy
        self.samples, self.settings, self.training = samples, model, training
        self.runtime, self.cache, self.workspace = runtime, cache, workspace
        self.decoders = decoders
        self._ready: tuple[Inputs, FeatureScaling | None] | None = None
        self.scaling: FeatureScaling | None = None  # once features are ready
        self.backbone: Backbone | None = None
        self.extractor: Extractor | None = None
        if not isinstance(samples.source, np.ndarray):
            with runtime.seeded():
                self.backbone = self._new_backbone()
        elif training.mode != "head":
            raise ConfigError(
                f"the input holds feature vectors, and --mode {training.mode} trains on pictures; "
                "use --mode head."
            )
        if self.backbone is not None and training.mode == "head":
            self.extractor = make_extractor(self.backbone, model, runtime, decoders)

    def width(self) -> int:
        """Give how many features a row has; 0 where a network looks at pictures."""
        if self.extractor is not None:
            return self.extractor.embedder.width
        source = self.samples.source
        return source.shape[1] if isinstance(source, np.ndarray) else 0

    def missing_features(self) -> int:
        """Count the samples whose features are not in the cache; 0 where none are computed."""
        if self.extractor is None or self.samples.features_of(self.extractor.key) is not None:
            return 0
        return len(self._feature_cache(self.extractor).find(self.samples.digest).missing)

    def features(self, progress: OpenProgress) -> NDArray[np.float32] | None:
        """Make the inputs ready, once.

        Returns:
            (n, D) scaled features of the samples to train on in head mode, else None.
        """
        inputs, _ = self._prepared(progress)
        return inputs.matrix[: self.samples.trained] if isinstance(inputs, Features) else None

    def again(self, samples: Samples, name: str, change: InputChange | None = None) -> "Fitter":
        """Give a fitter that trains anew with the inputs of this one, which are ready.

        Args:
            samples: What to train on: the samples of this one, with other labels or in an order.
            name: Folder for its checkpoints, inside that of this one.
            change: Gives its inputs from those of this one; None: the same.
        """
        folder = None if self.workspace is None else self.workspace / name
        if folder is not None:
            folder.mkdir(exist_ok=True)
        other = Fitter(
            samples, self.settings, self.training, self.runtime,
            decoders=self.decoders,
            cache=self.cache,
            workspace=folder,
            strategy=self.strategy,
        )  # fmt: skip
        inputs, scaling = self._prepared(no_progress)
        other._ready = (inputs if change is None else change(inputs)), scaling
        return other

    def _prepared(self, progress: OpenProgress) -> tuple[Inputs, FeatureScaling | None]:
        if self._ready is None:
            with progress("features") as on_progress:
                self._ready = self._inputs(on_progress)
                self.scaling = self._ready[1]
        return self._ready

    def fit(
        self,
        loss: RobustLoss,
        progress: OpenProgress = no_progress,
        watch: Watch | None = None,
    ) -> Fitted:
        """Train with a loss, which is bound here.

        Args:
            loss: A new loss.
            progress: Opens a progress bar by name.
            watch: Told, after every epoch, (M - n, C) probabilities of the samples not trained on.
        """
        inputs, scaling = self._prepared(progress)
        n, runtime = self.samples.trained, self.runtime
        with runtime.seeded(), self._threads():
            task = self._task(inputs, loss)
            recorder, checkpoints = self._watchers(task)
            with progress("train") as on_progress:
                others = Subset(inputs, np.arange(n, len(self.samples.rows)))
                after_epoch = watched(task.model, others, runtime, watch, in_rows(on_progress, n))
                trained = train(
                    task, runtime, recorder, checkpoints=checkpoints, on_progress=after_epoch
                )
            with progress("score"):
                probs = predict_probs(task.model, inputs, runtime)
                embedding = (
                    inputs.matrix[:n]
                    if isinstance(inputs, Features)
                    else embed(task.model, task.inputs, runtime)
                )
                targets = current_targets(task)
                records = recorder.freeze(
                    probs[:n],
                    epochs=trained.epoch + 1,
                    embedding=embedding,
                    targets=None if targets is None else targets.float().cpu().numpy(),
                )
        return Fitted(
            records=records,
            model=task.model,
            scaling=scaling,
            backbone=self.backbone,
            other_probs=probs[n:],
            epochs=trained.epoch + 1,
            best_epoch=trained.best_epoch,
        )

    def fit_apart(
        self, loss: RobustLoss, apart: int, on_progress: OnProgress
    ) -> NDArray[np.float32] | None:
        """Train with a loss, and keep nothing but what is said about samples not trained on.

        Args:
            loss: A new loss; it is bound here.
            apart: How many, from the first that is not trained on.
            on_progress: Told how many epochs are done.

        Returns:
            (apart, C) posteriors averaged over the later epochs; None in a process that does not
            lead.
        """
        inputs, _ = self._prepared(no_progress)
        n, runtime, folder = self.samples.trained, self.runtime, self.workspace
        with runtime.seeded(), self._threads():
            task = self._task(inputs, loss)
            watcher = LeftOut(
                task.model,
                Subset(inputs, np.arange(n, n + apart)),
                runtime,
                classes=self.samples.num_classes,
                epochs=self.training.epochs or 1,
                allocate=in_memory if folder is None else mapped(folder),
            )
            checkpoints = None if folder is None else Checkpoints(folder)
            trained = train(
                task,
                runtime,
                watcher,
                checkpoints=checkpoints,
                on_progress=in_rows(on_progress, n),
            )
            return watcher.mean(trained.epoch + 1)

    def _task(self, inputs: Inputs, loss: RobustLoss) -> Task:
        samples, runtime, n = self.samples, self.runtime, self.samples.trained
        model = self._model(inputs, loss.needs_attention).to(runtime.device)
        loss.bind(n, samples.num_classes, self.training.epochs)
        loss.to(runtime.device)
        strategy, label = self.strategy(), torch.from_numpy(samples.label[:n])
        strategy.bind(label.to(runtime.device), samples.num_classes, self.training.epochs or 1)
        peers = tuple(
            self._model(inputs, loss.needs_attention, peer=True).to(runtime.device)
            for _ in range(strategy.networks - 1)
        )
        for network in (model, *peers):
            for value in (*network.parameters(), *network.buffers()):
                runtime.same_as_lead(value.data)
        return Task(
            model=model,
            inputs=Subset(inputs, np.arange(n)),
            label=samples.label[:n],
            weight=sample_weights(samples, self.training.class_weights),
            sample_id=samples.sample_id,
            loss=loss,
            settings=self.training,
            validate=self._validation(model, inputs),
            strategy=strategy,
            peers=peers,
            verified=None if samples.verified is None else samples.verified[:n],
        )

    def _watchers(self, task: Task) -> tuple[Recorder, Checkpoints | None]:
        runtime, folder = self.runtime, self.workspace
        recorder = Recorder(
            task.label,
            self.training.epochs or 1,
            classes=self.samples.num_classes,
            allocate=in_memory if folder is None else mapped(folder),
            device=runtime.device,
            add=runtime.sum,
            writes=runtime.leads,
        )
        return recorder, None if folder is None else Checkpoints(folder)

    def _threads(self) -> AbstractContextManager[None]:
        # A head's matrices are so small that threads cost more than they give, and one thread
        # makes the result independent of how many there are.
        return one_thread_each() if self.training.mode == "head" else nullcontext()

    def _feature_cache(self, extractor: Extractor) -> FeatureCache:
        limit = self.training.cache_gigabytes * 2**30
        return FeatureCache(self.cache, extractor.key, extractor.embedder.width, limit)

    def _inputs(self, on_progress: OnProgress) -> tuple[Inputs, FeatureScaling | None]:
        samples = self.samples
        if self.backbone is not None and self.extractor is None:
            ready = picture_inputs(
                samples, self.backbone, self.training, self.runtime, self.decoders
            )
            return ready, None
        cache = None if self.extractor is None else self._feature_cache(self.extractor)
        return feature_inputs(samples, self.extractor, cache, self.workspace, on_progress)

    def _new_backbone(self) -> Backbone:
        return build_backbone(
            self.settings.backbone,
            pretrained=self.settings.pretrained and self.training.mode != "scratch",
            image_size=self.settings.image_size,
            picture_side=self.samples.picture_side,
        )

    def _model(self, inputs: Inputs, attention: bool, *, peer: bool = False) -> nn.Module:
        classes = self.samples.num_classes
        if isinstance(inputs, Features):
            return head_of_features(inputs.matrix.shape[1], classes, self.settings, attention)
        if self.backbone is None:
            raise TypeError("pictures need a backbone")
        backbone = self._new_backbone() if peer else self.backbone
        return whole_network(backbone, classes, self.settings, self.training, attention, peer=peer)

    def _validation(self, model: nn.Module, inputs: Inputs) -> Callable[[], float] | None:
        if (rows := self.samples.validation.get(self.training.early_stop)) is None:
            return None
        part, label = Subset(inputs, rows), self.samples.label[rows]
        return lambda: float((predict_probs(model, part, self.runtime).argmax(1) == label).mean())
