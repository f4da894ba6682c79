"""Labels and probabilities of a simulated good model, with known errors."""

import numpy as np


def simulated(count=3000, size=4, rate=0.15, seed=0, inverse_temperature=3.0):
    """Give (label, probs, true): uniform flips, a model that learned from the noisy labels."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    flip = rng.random(count) < rate
    label = np.where(flip, (true + rng.integers(1, size, count)) % size, true)
    logits = rng.standard_normal((count, size)) + inverse_temperature * np.eye(size)[true]
    sure = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    probs = (1 - rate) * sure + rate * (1 - sure) / (size - 1)
    return label.astype(np.int64), (probs / probs.sum(axis=1, keepdims=True)), true
