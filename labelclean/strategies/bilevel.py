"""Bilevel learning: parts of a batch count as their gradient agrees with another part's."""

import torch
from torch import Tensor

from labelclean.errors import ConfigError
from labelclean.losses.checks import number, whole
from labelclean.strategies.base import ROW_WEIGHTS, Setting, Step, Strategy, Verdict, one_hot


class Bilevel(Strategy):
    """One chunk of each batch plays validation; the others count as their gradient agrees with it.

    w_i = <g_v, g_i> / (|g_i|^2 + mu); the step is sum_i (w_i / sum_j |w_j|) g_i. Chunks that
    disagree with the validation chunk, as those with many wrong labels do, get a small or a
    negative weight. For a classifier on features f with a bias the product of two rows' gradients
    is exactly <p_a - e_a, p_b - e_b> (<f_a, f_b> + 1), so no further backward pass is needed.

    Args:
        chunks: Parts of a batch, at least 2; the first is the validation chunk.
        mu: Above 0; keeps weights finite.

    Paper: Jenni and Favaro, "Deep Bilevel Learning", 2018 (chunks of 8 rows). Exact for linear
    heads; of a whole network only the last layer's gradient is looked at, which is our deviation.
    Rows of every class are dealt to the chunks in turn, in place of their class-matched sampler.
    """

    paper = "Jenni & Favaro, Deep Bilevel Learning, 2018"
    formula = "w_i = <g_v,g_i> / (|g_i|^2 + mu),  step = sum w_i g_i / sum |w_j|"
    advice = (("CIFAR-10, Inception", "chunks=8, mu=0.01, batches of 64"),)
    changes = frozenset({ROW_WEIGHTS})
    needs_features = True
    by_parts = True

    def __init__(self, chunks: int = 8, mu: float = 0.01) -> None:
        super().__init__()
        self.chunks = whole("chunks", chunks, 2)
        self.mu = number("mu", mu, 0, open_low=True)

    def unfit(self, setting: Setting) -> str | None:
        """Ask for batches that fill every chunk."""
        size = min(setting.batch_size, setting.rows)
        if size >= 2 * self.chunks:
            return None
        return (
            f"batches of {size} rows are too small for {self.chunks} chunks; set "
            f"training.batch_size to {2 * self.chunks} or more, or strategy.chunks lower"
        )

    def judge(self, logits: Tensor, step: Step) -> Verdict:
        """Weigh the chunks."""
        if step.features is None:
            raise ConfigError("bilevel looks at what the classifier sees, and got nothing.")
        labels, scores, features = step.labels, logits[0].detach().double(), step.features[0]
        chunk = deal(labels, self.chunks)
        delta = torch.softmax(scores, dim=1) - one_hot(labels, scores.shape[1], scores)
        counts = torch.bincount(chunk, minlength=self.chunks).clamp(min=1).to(delta.dtype)
        member = one_hot(chunk, self.chunks, delta) / counts
        # The mean gradient of a chunk: (K, C) by (K, D + 1), kept as an outer product of sums.
        extended = torch.cat([features.double(), torch.ones_like(delta[:, :1])], dim=1)
        product = (delta @ delta.T) * (extended @ extended.T)
        gram = member.T @ product @ member
        weight = chunk_weights(gram, self.mu)
        return Verdict(weights=(weight[chunk] / counts[chunk]).to(logits.dtype)[None], divisor=1.0)


def deal(labels: Tensor, chunks: int) -> Tensor:
    """Give the (B,) chunk of every row: the rows of a class go to the chunks in turn."""
    order = torch.argsort(labels, stable=True)
    chunk = torch.empty_like(labels)
    chunk[order] = torch.arange(len(labels), device=labels.device) % chunks
    return chunk


def chunk_weights(gram: Tensor, mu: float) -> Tensor:
    """Give the (K,) weights of chunks by the (K, K) products of their gradients; the first: 0."""
    weight = gram[0] / (gram.diagonal() + mu)
    weight[0] = 0
    total = weight.abs().sum()
    return weight / total if total > 0 else weight
