"""A loss over many bursts in shards: the sum is taken shard by shard, here or on the workers of Dask.

Shards have a fixed size, each is summed from zero, and their sums are added in the order of the shards. So the result
has the same bits whoever computes a shard: this process, one worker or many, or another one after the first has died.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyloca._memory import keep_memory
from pyloca._threads import one_thread
from pyloca._workers import current_client, worker_errors
from pyloca.networks import PushforwardKernel, make_kernel
from pyloca.solvers._problem import CHUNK

__all__ = ["DATA", "MANY", "SHARD", "Loss", "Shards", "shard_sums", "told_place", "training_client"]

LOGGER = logging.getLogger("pyloca")

SHARD = 8 * CHUNK  # bursts
# Bursts beyond one shard are kept in single precision, whichever precision the network computes in: that rounds them
# by 10⁻⁷ of their size, and halves what workers and scheduler hold.
DATA = torch.float32
MANY = 100_000  # bursts from which on workers are used: an evaluation of fewer takes no longer than to ask them

Loss = Callable[[Tensor, slice], tuple[float, Tensor]]


def shard_sums(kernel: PushforwardKernel, stack: Tensor, loss: Loss) -> Iterator[tuple[float, Tensor]]:
    """Yield the sum of the loss over each shard, and its gradient by θ, the parameters that `kernel` has.

    Parameters
    ----------
    kernel : PushforwardKernel
    stack : Tensor (1 + k, n, D)
        In any precision. The network computes in that of the kernel; losses and sums are in double precision.
    loss : callable
        Takes the network's output for some bursts, and which these are.
    """
    n = stack.shape[1]
    for first in range(0, n, SHARD):
        total, end = 0.0, min(first + SHARD, n)
        gradient = torch.zeros_like(kernel.theta, dtype=torch.float64)
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            value, cotangent = loss(kernel.forward(stack[:, part].to(kernel.theta.dtype).contiguous()).double(), part)
            total += value
            kernel.backward(cotangent.to(kernel.theta), gradient)
        yield total, gradient


def training_client(n: int) -> Any:
    """Return the current client of Dask if n bursts are enough for its workers, else None."""
    return current_client() if n >= MANY else None


def told_place(n: int) -> str:
    """Say where n bursts are trained on, if there are workers.

    Parameters
    ----------
    n : int

    Returns
    -------
    str
        Empty if there are no workers.

    Examples
    --------
    >>> told_place(1000)  # without workers there is nothing to say
    ''
    """
    if current_client() is None:
        return ""
    if n < MANY:
        return f"trained in this process, not on Dask workers: below {MANY:,} bursts that is faster"
    return f"trained on Dask workers, in shards of {SHARD:,} bursts"


@dataclass
class _Shard:
    """One shard on a worker; its kernel is made there, and again when the precision changes."""

    network: nn.Module
    stack: Tensor
    loss: Loss
    kernel: PushforwardKernel | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kernel": None}

    def evaluate(self, theta: NDArray[np.float64], dtype: torch.dtype) -> tuple[float, NDArray[np.float64]]:
        with one_thread(helping=True):
            if self.kernel is None or self.kernel.theta.dtype != dtype:
                keep_memory()
                self.kernel = make_kernel(copy.deepcopy(self.network).to(dtype))
            self.kernel.theta.copy_(torch.from_numpy(theta))
            ((total, gradient),) = shard_sums(self.kernel, self.stack, self.loss)
        return total, gradient.numpy()


class Shards:
    """Shards that stay on workers: θ goes out inside the tasks, values and gradients come back.

    Parameters
    ----------
    client : distributed.Client
    network : torch.nn.Module
    stack : Tensor (1 + k, n, D)
    loss : callable
    narrowed : callable
        Takes the loss and a slice of the bursts to the loss of these bursts alone.
    """

    def __init__(
        self,
        client: Any,
        network: nn.Module,
        stack: Tensor,
        loss: Loss,
        narrowed: Callable[[Loss, slice], Loss],
    ) -> None:
        import dask.config

        self.client, self.futures = client, []
        on_processor = copy.deepcopy(network).cpu()
        # A shard is made by a task that holds its data, so that Dask can make it again when its worker dies.
        with worker_errors(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            for start in range(0, stack.shape[1], SHARD):
                part = slice(start, start + SHARD)
                # clones: a view would take the whole storage with it; workers compute on their processors
                shard = stack[:, part].to(DATA).cpu().clone(), _cloned(narrowed(loss, part))
                self.futures.append(client.submit(_Shard, on_processor, *shard, pure=False))
        LOGGER.info("%d shards of bursts go to the workers of %s", len(self.futures), client.scheduler.address)

    def sums(self, theta: Tensor, dtype: torch.dtype) -> Iterator[tuple[float, Tensor]]:
        """Yield the sums of the shards in their order, as `shard_sums` does with a kernel of this precision."""
        sent = [theta.cpu().numpy().copy()] * len(self.futures)
        with worker_errors():
            tasks = self.client.map(_Shard.evaluate, self.futures, sent, dtype=dtype, pure=False)
            found = self.client.gather(tasks)
        for total, gradient in found:
            yield total, torch.from_numpy(gradient).to(theta.device)

    def release(self) -> None:
        """Let workers and scheduler forget the shards: nothing more will be asked of them."""
        self.futures.clear()


def _cloned(loss: Any) -> Any:
    """Copy the tensors of a loss that is made of `functools.partial`."""
    if isinstance(loss, Tensor):
        return loss.cpu().clone()
    if isinstance(loss, tuple):
        return tuple(_cloned(part) for part in loss)
    if hasattr(loss, "func"):
        return type(loss)(loss.func, *(_cloned(part) for part in loss.args))
    return loss
