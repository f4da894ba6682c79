"""`labelclean` whose process number FAULT_RANK is killed in epoch FAULT_EPOCH; for torchrun."""

import os
import signal

from labelclean.cli import main
from labelclean.training import loop

real = loop._objective


def objective(task, runtime, recorder, loss, batch, part, epoch):
    """Die in the middle of an epoch of the final training, which alone has checkpoints."""
    values = real(task, runtime, recorder, loss, batch, part, epoch)
    mine = os.environ.get("FAULT_RANK") == str(runtime.rank) and runtime.processes > 1
    if mine and epoch == int(os.environ["FAULT_EPOCH"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return values


loop._objective = objective
main()
