"""Records with planted noise, made without training."""

import numpy as np

from labelclean.records.records import Records


def planted_records(count=600, size=5, rate=0.2, epochs=6, seed=0):
    """Give (records, wrong): a good model's evidence on labels of which some are flipped."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, size, count)
    wrong = rng.random(count) < rate
    label = np.where(wrong, (true + rng.integers(1, size, count)) % size, true)
    centre = rng.standard_normal((size, 8)) * 4
    embedding = (centre[true] + rng.standard_normal((count, 8))).astype(np.float32)
    embedding[1::2] = embedding[::2] + 1e-4  # every second row is a twin of the one before
    true[1::2] = true[::2]
    label[1::2] = np.where(wrong[1::2], (true[1::2] + 1) % size, true[1::2])
    label[::2] = np.where(wrong[::2], (true[::2] + 1) % size, true[::2])
    logits = rng.standard_normal((epochs, count, size)) + 4 * np.eye(size)[true]
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    rows = np.arange(count)
    given = probs[:, rows, label]
    others = logits.copy()
    others[:, rows, label] = -np.inf
    margin = logits[:, rows, label] - others.max(axis=2)
    records = Records(
        label=label.astype(np.int64),
        probs=probs[-1].astype(np.float32),
        embedding=embedding,
        p_given=given.astype(np.float32),
        margin=margin.astype(np.float32),
        loss=-np.log(given).astype(np.float32),
        predicted=logits.argmax(axis=2).astype(np.int32),
        attention=np.clip(given + 0.1, 0, 1).astype(np.float32),
        target_given=given.astype(np.float32),
        target=probs[-1].astype(np.float32),
    )
    return records, wrong
