"""Metrics written to files and forwarded to the Weights & Biases run of the program.

pip install ./sdk wandb; python with_wandb.py     (WANDB_MODE=offline without a network)
"""

import wandb
from mldiagnostics import machinelearning_run, metrics


def main() -> None:
    """Record 20 steps."""
    with (
        wandb.init(project="examples", name="forwarded"),
        machinelearning_run("forwarded", sinks=["jsonl:", "wandb:"], log_system_metrics=False),
    ):
        for step in range(20):
            metrics.record("loss", 1 / (1 + step), step=step)
            metrics.record("accuracy", step / 20, step=step, labels={"split": "train"})


if __name__ == "__main__":
    main()
