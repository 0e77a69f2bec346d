"""A small GPT: the model of the demo, of its test and of its benchmark.

Decoder-only transformer after Radford et al. 2019 (GPT-2): pre-norm blocks, learned positions, GELU, tied embeddings.
Nothing in here knows about a device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["GPT", "Config"]


@dataclass(frozen=True)
class Config:
    vocabulary: int = 256  # bytes
    context: int = 128  # tokens
    layers: int = 4
    heads: int = 6
    width: int = 192
    dropout: float = 0.0


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)); x is (batch, time, width)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.norm_attention = nn.LayerNorm(config.width)
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.project = nn.Linear(config.width, config.width)
        self.norm_mlp = nn.LayerNorm(config.width)
        self.expand = nn.Linear(config.width, 4 * config.width)
        self.contract = nn.Linear(4 * config.width, config.width)

    def attend(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        heads = self.query_key_value(x).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, time, width / heads)
        mixed = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        return self.project(mixed.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.attend(self.norm_attention(x)), self.dropout, self.training)
        mlp = self.contract(F.gelu(self.expand(self.norm_mlp(x)), approximate="tanh"))
        return x + F.dropout(mlp, self.dropout, self.training)


class GPT(nn.Module):
    """tokens (batch, time) int64 -> logits (batch, time, vocabulary)."""

    def __init__(self, config: Config = Config()) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.apply(self._initialise)
        for block in self.blocks:  # keeps the variance of the residual stream from growing with depth
            nn.init.normal_(block.project.weight, std=0.02 / math.sqrt(2 * config.layers))
            nn.init.normal_(block.contract.weight, std=0.02 / math.sqrt(2 * config.layers))

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(positions)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token.weight)

    def loss(self, tokens: Tensor) -> Tensor:
        """Mean cross entropy, in nats, of each token given those before it; `tokens` is (batch, time + 1)."""
        logits = self(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    @torch.no_grad()
    def generate(self, prompt: Tensor, length: int, temperature: float = 0.8) -> Tensor:
        """Appends `length` sampled tokens to `prompt` (1, time)."""
        tokens = prompt
        for _ in range(length):
            logits = self(tokens[:, -self.config.context :])[:, -1] / temperature
            tokens = torch.cat((tokens, torch.multinomial(logits.softmax(-1), 1)), dim=1)
        return tokens
