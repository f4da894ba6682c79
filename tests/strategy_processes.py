"""Trains a small task by every strategy, in as many processes as it is launched in."""

import sys

import numpy as np
from strategy_tasks import NAMES, make_task

from labelclean.records.recorder import Recorder
from labelclean.training.inference import predict_probs
from labelclean.training.loop import train
from labelclean.training.runtime import start_runtime

if __name__ == "__main__":
    runtime = start_runtime("cpu", threads=1)
    said = {}
    for name in NAMES:
        task = make_task(name, epochs=6)
        recorder = Recorder(task.label, 6, add=runtime.sum, writes=runtime.leads)
        with runtime.seeded():
            train(task, runtime, recorder)
        said[name] = predict_probs(task.model, task.inputs, runtime)
        if runtime.leads:
            records = recorder.freeze(said[name])
            assert np.isfinite(records.p_given).all(), name
    if runtime.leads:
        np.savez(sys.argv[1], **said)
    runtime.wait()
