"""Train the small GPT in PyTorch, on one process or with torchrun: the same run, metrics, goodput and restart.

pip install './sdk[capture]' torch numpy
python train_torch.py
torchrun --nproc-per-node 2 train_torch.py

SIZE             size of the model: tiny, small, 1b
CHECKPOINT       file of the checkpoint, on a disk of all processes (./checkpoint.pt)
MLDIAG_STORAGE   root directory of the run's files (./mldiagnostics)
STEPS            number of steps (300)
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist
from data import text
from mldiagnostics import MLRun, machinelearning_run, metrics, xprof
from sizes import SIZES, VOCABULARY, Size
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY = 50
PROFILED = (20, 25)
"""First step of the profile, and the one after its last."""
stop_signals: list[int] = []
"""Numbers of the signals that ended the training; a preemption sends SIGTERM."""


class Block(nn.Module):
    """Attention and a perceptron, each added to its input."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self._heads = size.heads
        self._norms = nn.ModuleList(nn.RMSNorm(size.width) for _ in range(2))
        self._attention = nn.Linear(size.width, 3 * size.width, bias=False)
        self._attended = nn.Linear(size.width, size.width, bias=False)
        self._up = nn.Linear(size.width, 4 * size.width, bias=False)
        self._down = nn.Linear(4 * size.width, size.width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return features of the same shape (batch, length, width)."""
        batch, length, width = hidden.shape
        parts = self._attention(self._norms[0](hidden)).view(batch, length, 3, self._heads, width // self._heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self._attended(attended.transpose(1, 2).reshape(batch, length, width))
        return hidden + self._down(gelu(self._up(self._norms[1](hidden))))


class GPT(nn.Module):
    """The model; its output are the scores of the next tokens."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self._tokens = nn.Embedding(VOCABULARY, size.width)
        self._positions = nn.Parameter(0.02 * torch.randn(size.context, size.width))
        self._blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self._norm = nn.RMSNorm(size.width)
        self._scores = nn.Linear(size.width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores, shape (batch, length, vocabulary)."""
        hidden = self._tokens(tokens) + self._positions
        for block in self._blocks:
            hidden = block(hidden)
        return self._scores(self._norm(hidden))


def stop(number: int, _: FrameType | None) -> None:
    """Save and leave after this step."""
    stop_signals.append(number)


def is_stopping() -> bool:
    """Whether any process got a signal: all leave after the same step."""
    stopping = torch.tensor(bool(stop_signals), dtype=torch.int)
    if dist.is_initialized():
        dist.all_reduce(stopping)
    return bool(stopping)


def train(run: MLRun, size: Size, steps: int) -> tuple[int, int]:
    """Train until the last step or a signal; return the first and the last step."""
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else "cpu"
    file = Path(os.environ.get("CHECKPOINT", "checkpoint.pt"))
    with run.recorder.training_preparation():
        torch.manual_seed(0)
        model = GPT(size).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=size.learning_rate)
        first = 0
        if file.exists():
            with run.recorder.checkpoint_restore():
                state = torch.load(file, map_location=device)
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                first = state["step"] + 1
        wrapped = DistributedDataParallel(model) if ranks > 1 else model
    if first <= PROFILED[0]:
        xprof(steps=PROFILED)
    number = first - 1
    for number in range(first, steps):
        with run.recorder.data_loading():
            tokens = torch.from_numpy(text(size, number, rank, ranks)).long().to(device)
        run.step(number)
        loss = cross_entropy(wrapped(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        metrics.record("learning/loss", loss, step=number)
        metrics.record("learning/grad_norm", norm, step=number)
        stopping = is_stopping()
        if rank == 0 and number % 50 == 0:
            print(f"step {number}: loss {float(loss):.3f}", flush=True)
        if rank == 0 and (stopping or number == steps - 1 or number % SAVE_EVERY == SAVE_EVERY - 1):
            with run.recorder.checkpoint_save(number):
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number}
                torch.save(state, f"{file}.part")
                Path(f"{file}.part").replace(file)
        if stopping:
            break
    return first, number


def main() -> int:
    """Join the job, start the run, train; return the exit status."""
    signal.signal(signal.SIGTERM, stop)
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group()
    size, steps = SIZES[os.environ.get("SIZE", "tiny")], int(os.environ.get("STEPS", "300"))
    with machinelearning_run("gpt-torch", configs={"size": vars(size)}, on_demand_xprof=True) as run:
        first, last = train(run, size, steps)
        if not dist.is_initialized() or dist.get_rank() == 0:
            print(f"trained steps {first} to {last}", flush=True)
        if stop_signals:
            raise SystemExit(128 + stop_signals[0])  # never 0: the controller starts the work again
    if dist.is_initialized():
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
