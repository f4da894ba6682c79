"""What a trained model says, in evaluation mode, shared among the processes."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelclean.training.batches import share
from labelclean.training.runtime import Runtime
from labelclean.training.task import Inputs

_BATCH = 256


def predict_probs(model: nn.Module, inputs: Inputs, runtime: Runtime) -> NDArray[np.float32]:
    """Give (N, C) probabilities of all samples; the same in every process."""
    index, logits = _forward(model, inputs, runtime)
    probs = torch.softmax(logits, dim=1)
    ordered = torch.empty_like(probs)
    ordered[index] = probs
    return ordered.cpu().numpy()


@torch.inference_mode()
def _forward(model: nn.Module, inputs: Inputs, runtime: Runtime) -> tuple[Tensor, Tensor]:
    training = model.training
    model.eval()
    mine = share(np.arange(len(inputs)), runtime.rank, runtime.processes)
    cuts = [mine[start : start + _BATCH] for start in range(0, len(mine), _BATCH)]
    answers = []
    for batch in inputs.batches(cuts):
        with runtime.autocast():
            answers.append(model(batch.to(runtime.device, non_blocking=True)).logits.float())
    model.train(training)
    return runtime.gather(torch.from_numpy(mine).to(runtime.device), torch.cat(answers))
