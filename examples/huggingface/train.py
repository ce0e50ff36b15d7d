"""Hugging Face Trainer as a run, with one callback. It needs no network: the model is small and untrained.

pip install ./sdk transformers accelerate torch; python train.py; python -m mldiagnostics.runs mldiagnostics
"""

import torch
from mldiagnostics.integrations.huggingface import MLDiagnosticsCallback
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    """Random tokens; the label is 1 if the first token is at least 50."""

    def __init__(self, count: int) -> None:
        self.tokens = torch.randint(0, 100, (count, 16), generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = self.tokens[index]
        return {"input_ids": tokens, "labels": (tokens[0] >= 50).long()}


def main() -> None:
    """Train and evaluate a small BERT."""
    model = BertForSequenceClassification(
        BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            "checkpoints", run_name="bert", max_steps=12, logging_steps=4, report_to="none", use_cpu=True,
            disable_tqdm=True, eval_strategy="steps", eval_steps=6, save_strategy="steps", save_steps=6,
        ),
        train_dataset=Sentences(96),
        eval_dataset=Sentences(16),
        callbacks=[MLDiagnosticsCallback(run_group="examples")],
    )  # fmt: skip
    trainer.train()
    trainer.evaluate()


if __name__ == "__main__":
    main()
