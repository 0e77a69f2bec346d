"""Models people train, each with its data: one `Task` per name in TASKS.

A task makes its model and its batches on the CPU from a seed, so that every device starts from the same place.
Sizes are chosen so that twenty steps take seconds on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from gpt import GPT, Config
from torch import Tensor, nn

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Task:
    model: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    loss: Callable[[nn.Module, Batch], Tensor]


def tokens(random: torch.Generator, batch: int, time: int, vocabulary: int = 64) -> Tensor:
    """Arithmetic sequences: something a model can learn in twenty steps."""
    start = torch.randint(vocabulary, (batch, 1), generator=random)
    stride = torch.randint(1, 4, (batch, 1), generator=random)
    return (start + stride * torch.arange(time)) % vocabulary


def next_token_loss(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch[0][:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[0][:, 1:].flatten())


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def residual_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, stride=1),
        ResidualBlock(16, 16, 1),
        ResidualBlock(16, 32, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def digits(random: torch.Generator) -> Batch:
    from sklearn.datasets import load_digits

    data = load_digits()
    chosen = torch.randint(len(data.target), (64,), generator=random)
    images = torch.as_tensor(data.images, dtype=torch.float32)[chosen].unsqueeze(1) / 16
    return images, torch.as_tensor(data.target)[chosen]


class RecurrentLanguageModel(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 48)
        self.recurrent = kind(48, 64, num_layers=2, batch_first=True)
        self.head = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.recurrent(self.embed(x))[0])


class Translator(nn.Module):
    """nn.Transformer, encoder and decoder, learning to repeat its input."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 32)
        self.transformer = nn.Transformer(32, 4, 2, 2, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        embedded = self.embed(x)
        return self.head(self.transformer(embedded, embedded, tgt_mask=mask, tgt_is_causal=True))


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForMaskedLM(config)


def vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=10,
    )  # fmt: skip
    return ViTForImageClassification(config)


def masked_tokens(random: torch.Generator) -> Batch:
    """Input with a seventh of the tokens replaced by 0, attention mask with a padded tail, labels (-100: not asked)."""
    labels = tokens(random, 8, 24)
    hidden = torch.rand(labels.shape, generator=random) < 1 / 7
    attention = torch.ones_like(labels)
    attention[:4, 20:] = 0
    return labels.masked_fill(hidden, 0), attention, labels.masked_fill(~hidden, -100)


def pictures(random: torch.Generator) -> Batch:
    return torch.randn(8, 3, 16, 16, generator=random), torch.randint(10, (8,), generator=random)


TASKS: dict[str, Task] = {
    "gpt": Task(
        lambda: GPT(Config(vocabulary=64, context=48, layers=2, heads=4, width=64)),
        lambda random: (tokens(random, 8, 49),),
        next_token_loss,
    ),
    "residual_net": Task(residual_net, digits, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])),
    "lstm": Task(lambda: RecurrentLanguageModel(nn.LSTM), lambda random: (tokens(random, 8, 25),), next_token_loss),
    "gru": Task(lambda: RecurrentLanguageModel(nn.GRU), lambda random: (tokens(random, 8, 25),), next_token_loss),
    "transformer": Task(Translator, lambda random: (tokens(random, 8, 17),), next_token_loss),
    "llama": Task(
        llama,
        lambda random: (tokens(random, 8, 24),),
        lambda model, batch: model(input_ids=batch[0], labels=batch[0]).loss,
    ),
    "bert": Task(
        bert,
        masked_tokens,
        lambda model, batch: model(input_ids=batch[0], attention_mask=batch[1], labels=batch[2]).loss,
    ),
    "vit": Task(vit, pictures, lambda model, batch: model(pixel_values=batch[0], labels=batch[1]).loss),
}
