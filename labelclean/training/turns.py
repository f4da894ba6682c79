"""An epoch in which a strategy sees whole batches and says what every step optimises."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from labelclean.errors import TrainingError, shortlist
from labelclean.losses import RobustLoss
from labelclean.models.head import Answer
from labelclean.strategies import ROW_INPUTS, EpochPlan, Feed, Step, Turn, given_label_loss
from labelclean.training.batches import share
from labelclean.training.feeds import Feeds, Moment, feed_on
from labelclean.training.inference import outputs
from labelclean.training.loss_schedule import share_gradients
from labelclean.training.networks import Networks, classifier_inputs
from labelclean.training.objective import held_to_labels, judged_objective
from labelclean.training.optim import set_rate
from labelclean.training.runtime import Runtime
from labelclean.training.task import Subset, Task, TrainingWatcher


class Turns:
    """Takes the steps of an epoch as a strategy asks.

    Every process computes its share of the logits, all of them judge the whole batch and come to
    the same gradient by the logits, and each sends its share of that back through the networks.

    Args:
        task: What to train.
        networks: That of the task and what is beside it.
        optimizer: Of all networks that learn, and of the loss.
        scaler: Of gradients in half precision.
        runtime: Where.
        recorder: Sees every row once an epoch; None: nobody watches.
    """

    def __init__(
        self,
        task: Task,
        networks: Networks,
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler,
        runtime: Runtime,
        recorder: TrainingWatcher | None,
    ) -> None:
        self.task, self.networks, self.optimizer = task, networks, optimizer
        self.scaler, self.runtime, self.recorder = scaler, runtime, recorder
        self.feeds = Feeds(task, runtime)
        self.strategy, self.epochs = task.strategy, task.settings.epochs or 1
        self._mixes = ROW_INPUTS in self.strategy.changes

    def run(self, epoch: int, loss: RobustLoss) -> None:
        """Take all steps of a 0-based epoch."""
        generator = self._generator(Moment(epoch, 0, 0, 0), 2)
        plan = self.strategy.start_epoch(epoch, self._sweep, generator)
        if self.networks.begin_epoch(plan):
            # What the optimiser knows belongs to weights that are gone.
            self.optimizer.state.clear()
        for network in self.networks.learning:
            network.train()
        for number, turn in enumerate(plan.turns):
            self._take(turn, Moment(epoch, number, 0, 0), loss, plan)
        self.strategy.end_epoch()
        self.networks.agree(self.runtime)
        if self._mixes and self.recorder is not None:
            self._record_all()

    def _take(self, turn: Turn, now: Moment, loss: RobustLoss, plan: EpochPlan) -> None:
        steps = self.feeds.drawn(turn, now)
        feeds = [
            self.strategy.feed(groups, self._generator(replace(now, step=step), 0))
            for step, groups in enumerate(steps)
        ]
        wanted = turn.networks if self.strategy.needs_features else ()
        watched = [self.networks.learning[number] for number in wanted]
        inputs = self.feeds.inputs(feeds, now.epoch)
        with classifier_inputs(watched) as seen:
            for step, (feed, (own, mixture)) in enumerate(zip(feeds, inputs, strict=True)):
                at = replace(now, step=step, steps=len(steps))
                set_rate(self.optimizer, self.task.settings, self._scheduled(plan, at))
                self.optimizer.zero_grad(set_to_none=True)
                if self._backward(turn, feed, own, mixture, at, loss, seen):
                    share_gradients(self.optimizer, self.runtime, 1.0, moved_only=True)
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                if self.strategy.averaged:
                    for number in turn.networks:
                        self.networks.average(number, self.strategy.average_decay(number))

    def _progress(self, at: Moment) -> float:
        return (at.epoch + at.step / max(at.steps, 1)) / self.epochs

    def _scheduled(self, plan: EpochPlan, at: Moment) -> float | None:
        if plan.constant:
            return None
        done = at.epoch - plan.since + at.step / max(at.steps, 1)
        return done / (self.epochs - plan.since)

    def _generator(self, at: Moment, use: int) -> np.random.Generator:
        seed = self.runtime.seed
        return np.random.default_rng([abs(seed), int(seed < 0), 4, at.epoch, at.turn, at.step, use])

    def _backward(
        self,
        turn: Turn,
        feed: Feed,
        own: Tensor,
        mixture: Tensor,
        at: Moment,
        loss: RobustLoss,
        seen: list[Tensor | None],
    ) -> bool:
        """Send a step's gradient through the networks; say whether there is one."""
        task, runtime = self.task, self.runtime
        with runtime.autocast():
            answers: list[Answer] = [
                self.networks.learning[number](mixture) for number in turn.networks
            ]
        feed = feed_on(feed, runtime.device)
        mine = torch.from_numpy(self.feeds.mine(feed)).to(runtime.device)
        logits = torch.stack([self._whole(mine, answer.logits) for answer in answers])
        self._require_finite(logits, feed, at)
        tau = [answer.attention for answer in answers]
        attention = (
            torch.stack([self._whole(mine, each) for each in tau if each is not None])
            if (tau[0] is not None)
            else None
        )
        leaves = [each.requires_grad_() for each in (logits, attention) if each is not None]
        labels = torch.from_numpy(task.label).to(runtime.device)[feed.rows]
        weight = torch.from_numpy(task.weight).to(runtime.device)[feed.rows]
        step = Step(
            networks=turn.networks,
            feed=feed,
            labels=labels,
            progress=self._progress(at),
            epochs_done=self._progress(at) * self.epochs,
            generator=self._generator(at, 1),
            ask=lambda number, averaged: self._ask(number, averaged, own, mine),
            features=torch.stack([self._whole(mine, each) for each in seen if each is not None])
            if seen
            else None,
        )
        verdict = self.strategy.judge(logits, step)
        if task.verified is not None and feed.partner is None:
            sure = torch.from_numpy(task.verified).to(runtime.device)[feed.rows]
            verdict = held_to_labels(verdict, sure, labels, self.strategy.by_parts)
        if self.recorder is not None and not self._mixes:
            said, given = logits[0].detach()[mine], labels[mine]
            known = given_label_loss(said, given)
            self.recorder.after_batch(feed.rows[mine], said, given, known, tau[0])
        total = judged_objective(loss, verdict, logits, attention, labels, feed.rows, weight)
        if total is None or not total.requires_grad:
            return False
        self._send_back(total, leaves, answers, mine, list(loss.parameters()))
        return True

    def _send_back(
        self,
        total: Tensor,
        leaves: list[Tensor],
        answers: list[Answer],
        mine: Tensor,
        own: list[nn.Parameter],
    ) -> None:
        """Send the gradient by the logits (and attention) of all back through this share of them.

        Args:
            total: What the step optimises.
            leaves: (K, M, C) logits and, where there is one, (K, M) attention.
            answers: This process's share of them, of each network.
            mine: The places of that share.
            own: The loss's own parameters.
        """
        gradients = torch.autograd.grad(total, [*leaves, *own], allow_unused=True)
        for parameter, gradient in zip(own, gradients[len(leaves) :], strict=True):
            # All processes have the whole of it, and it is about to be added over them.
            whole = torch.zeros_like(parameter) if gradient is None else gradient
            share_of_it = whole if self.runtime.leads else torch.zeros_like(parameter)
            parameter.grad = self.scaler.scale(share_of_it)
        for number, answer in enumerate(answers):
            ends = [each for each in (answer.logits, answer.attention) if each is not None]
            back = [
                self.scaler.scale(gradient[number][mine]).to(end.dtype)
                for end, gradient in zip(ends, gradients[: len(leaves)], strict=True)
                if gradient is not None
            ]
            torch.autograd.backward(ends[: len(back)], back)

    def _whole(self, mine: Tensor, part: Tensor) -> Tensor:
        """Put the parts of all processes together, constant."""
        part = part.detach()
        return self.runtime.gather(mine, part if part.dtype == torch.float64 else part.float())[1]

    @torch.no_grad()
    def _ask(self, number: int, averaged: bool, own: Tensor, mine: Tensor) -> Tensor:
        network = (self.networks.averages if averaged else self.networks.learning)[number]
        before = network.training
        network.eval()
        with self.runtime.autocast():
            answer: Answer = network(own)
        network.train(before)
        return self._whole(mine, answer.logits)

    def _sweep(self, number: int, what: str, rows: Tensor) -> Tensor:
        network = self.networks.learning[number]
        with classifier_inputs([network]) as seen:

            def answer(batch: Tensor) -> Tensor:
                logits: Tensor = network(batch).logits
                found = seen[0] if what == "features" else logits
                return logits if found is None else found.float()

            part = Subset(self.task.inputs, rows.cpu().numpy())
            said = outputs(answer, network, part, self.runtime)
        return torch.from_numpy(said).to(self.runtime.device)

    def _record_all(self) -> None:
        """Let the recorder see every row as it is: what was trained on were mixtures."""
        task, runtime = self.task, self.runtime
        said = outputs(
            lambda batch: task.model(batch).logits.float(), task.model, task.inputs, runtime
        )
        mine = share(np.arange(len(said)), runtime.rank, runtime.processes)
        index, logits, labels = (
            torch.from_numpy(each).to(runtime.device)
            for each in (mine, said[mine], task.label[mine])
        )
        if self.recorder is not None:
            known = given_label_loss(logits, labels)
            self.recorder.after_batch(index, logits, labels, known, None)

    def _require_finite(self, logits: Tensor, feed: Feed, at: Moment) -> None:
        finite = torch.isfinite(logits.sum(dim=(0, 2)))
        if bool(finite.all()):
            return
        names = shortlist(self.task.sample_id[feed.rows[~finite].cpu().numpy()])
        raise TrainingError(
            f"epoch {at.epoch + 1}: the model's answer is not finite for the samples {names}. "
            f"Lower training.learning_rate (now {self.task.settings.learning_rate}), or choose "
            "another loss."
        )
