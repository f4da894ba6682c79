"""What a trained model says, in evaluation mode, shared among the processes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.options import OnProgress
from labelclean.training.batches import share
from labelclean.training.runtime import Runtime
from labelclean.training.task import Inputs

_BATCH = 256
Watch = Callable[[NDArray[np.float32]], None]


def predict_probs(model: nn.Module, inputs: Inputs, runtime: Runtime) -> NDArray[np.float32]:
    """Give (N, C) probabilities of all samples; the same in every process."""

    def answer(batch: Tensor) -> Tensor:
        return torch.softmax(model(batch).logits.float(), dim=1)

    return outputs(answer, model, inputs, runtime)


def watched(
    model: nn.Module, inputs: Inputs, runtime: Runtime, watch: Watch | None, on_progress: OnProgress
) -> OnProgress:
    """Give a teller of epochs that also lets `watch` see what the model says at that moment."""
    if watch is None:
        return on_progress

    def after_epoch(done: int, total: int) -> None:
        watch(predict_probs(model, inputs, runtime))
        on_progress(done, total)

    return after_epoch


def embed(model: nn.Module, inputs: Inputs, runtime: Runtime) -> NDArray[np.float32]:
    """Give (N, D) features of all samples; the same in every process."""
    # By what it can do, not by its class: naming the class would load the whole of timm.
    network = getattr(model, "embed", None)
    if network is None:
        raise TypeError(f"{type(model).__name__} has no backbone to embed with")
    return outputs(lambda batch: network(batch).float(), model, inputs, runtime)


@torch.inference_mode()
def outputs(
    answer: Callable[[Tensor], Tensor], model: nn.Module, inputs: Inputs, runtime: Runtime
) -> NDArray[Any]:
    """Give what a function of a model says about all samples; the same in every process."""
    training = model.training
    model.eval()
    mine = share(np.arange(len(inputs)), runtime.rank, runtime.processes)
    cuts = [mine[start : start + _BATCH] for start in range(0, len(mine), _BATCH)]
    answers = []
    for batch in inputs.batches(cuts):
        with runtime.autocast():
            answers.append(answer(batch.to(runtime.device, non_blocking=True)))
    model.train(training)
    index, rows = runtime.gather(torch.from_numpy(mine).to(runtime.device), torch.cat(answers))
    return rows[torch.argsort(index)].cpu().numpy()
