"""Metrics written to files and forwarded to the MLflow run of the program.

pip install ./sdk mlflow; python with_mlflow.py

`mlflow-skinny` has no database of its own: set MLFLOW_TRACKING_URI to a server.
"""

import mlflow
from mldiagnostics import machinelearning_run, metrics


def main() -> None:
    """Record 20 steps."""
    with (
        mlflow.start_run(run_name="forwarded"),
        machinelearning_run("forwarded", sinks=["jsonl:", "mlflow:"], log_system_metrics=False),
    ):
        for step in range(20):
            metrics.record("loss", 1 / (1 + step), step=step)
            metrics.record("accuracy", step / 20, step=step, labels={"split": "train"})


if __name__ == "__main__":
    main()
