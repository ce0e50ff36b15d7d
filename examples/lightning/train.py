"""PyTorch Lightning training as a run, with one logger; the callback adds goodput.

pip install ./sdk pytorch-lightning torch; python train.py; python -m mldiagnostics.runs mldiagnostics
"""

import pytorch_lightning as lightning
import torch
from mldiagnostics.integrations.lightning import MLDiagnosticsCallback, MLDiagnosticsLogger


class Net(lightning.LightningModule):
    """Linear layer that learns to add."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.learning_rate = learning_rate
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        (inputs,) = batch
        loss = ((self.layer(inputs) - inputs.sum(dim=1, keepdim=True)) ** 2).mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        (inputs,) = batch
        self.log("validation_loss", (self.layer(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.learning_rate)


def main() -> None:
    """Train for one epoch."""
    data = torch.utils.data.TensorDataset(torch.randn(80, 4, generator=torch.Generator().manual_seed(0)))
    batches = torch.utils.data.DataLoader(data, batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        log_every_n_steps=2,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        logger=MLDiagnosticsLogger("adder", run_group="examples"),
        callbacks=[MLDiagnosticsCallback()],
    )
    trainer.fit(Net(learning_rate=0.1), batches, batches)


if __name__ == "__main__":
    main()
