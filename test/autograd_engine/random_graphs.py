"""Random backwards that two engines are to run alike.

A `Recipe` says everything about a graph and about the backward through it: `run(recipe)` builds the graph, runs the
backward and returns an `Outcome`. Each step draws from a generator seeded by the recipe and the step's number, so that
a recipe with fewer steps or without a feature is a part of the same graph: failing recipes shrink well.

Features (Recipe.features):
  views       views, in-place changes of clones and of views of clones
  outputs     nodes with several outputs, some of which nothing uses
  functions   functions written in Python that return None, get None, or change gradients
  hooks       hooks of tensors that scale gradients, retain_grad, hooks of leaves, multi-grad hooks
  nested      nodes that run a backward or a grad of their own, into shared leaves too; reentrant checkpoints
  checkpoint  non-reentrant checkpoints
  sparse      embeddings with sparse gradients
  errors      nodes and hooks that raise; the backward is then tried a second time

With several devices, values travel between them, and only steps whose sums are exact in float64 are drawn: the order of
sums over several devices is not fixed.
"""

import dataclasses
import random
import warnings
import weakref
from collections.abc import Callable

import torch
from autograd_engine.vocabulary import Log
from torch.autograd.graph import register_multi_grad_hook
from torch.utils.checkpoint import checkpoint

FEATURES = ("views", "outputs", "functions", "hooks", "nested", "checkpoint", "sparse", "errors")
CALLS = ("backward", "backward inputs", "grad", "grad twice", "create_graph", "roots", "accumulate", "capture inner")
SHAPE = (2, 3)
PATHS = 2**40  # sums of fewer signed ones are exact in float64


@dataclasses.dataclass(frozen=True)
class Recipe:
    seed: int
    steps: int
    leaves: int = 4
    features: frozenset[str] = frozenset()
    call: str = "backward"
    watch: bool = False  # log the order in which nodes run, by a prehook on every node
    threads: bool = True  # multithreading on
    devices: tuple[str, ...] = ("cpu",)


@dataclasses.dataclass
class Outcome:
    """What a backward did: gradients, what nodes and hooks logged, the errors it raised, tensors still alive."""

    gradients: list[torch.Tensor | None]
    log: list
    errors: list[str]
    leaked: int

    def differences(self, other: "Outcome") -> list[str]:
        """In which way `other`, of our engine, is not what `self`, of upstream's, is."""
        found = []
        if self.errors != other.errors:
            found.append(f"errors: {self.errors!r}, {other.errors!r}")
        if self.log != other.log:
            at = next((i for i, (a, b) in enumerate(zip(self.log, other.log, strict=False)) if a != b), None)
            at = min(len(self.log), len(other.log)) if at is None else at
            found.append(f"log from entry {at}: {self.log[at : at + 4]}, {other.log[at : at + 4]}")
        if len(self.gradients) != len(other.gradients):
            found.append(f"number of gradients: {len(self.gradients)}, {len(other.gradients)}")
        for number, (one, two) in enumerate(zip(self.gradients, other.gradients, strict=False)):
            if not same(one, two):
                found.append(f"gradient {number}: {one}, {two}")
        # After an error upstream's engine keeps nodes that did not run until the thread's next backward.
        if other.leaked or (self.leaked and not self.errors):
            found.append(f"tensors still alive: {self.leaked}, {other.leaked}")
        return found


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Whether two gradients are equal to the last bit, in layout and device too."""
    if one is None or other is None:
        return one is other
    if (one.layout, one.device, one.dtype, one.shape) != (other.layout, other.device, other.dtype, other.shape):
        return False
    if one.device.type == "meta":
        return True
    one, other = one.detach().to_dense().cpu(), other.detach().to_dense().cpu()
    return torch.equal(one.view(torch.int64), other.view(torch.int64))


class Scaled(torch.autograd.Function):
    """Several copies of the input; the backward may drop, keep or scale what arrives."""

    @staticmethod
    def forward(ctx, x, copies, factor, log, label, materialize):
        ctx.factor, ctx.log, ctx.label = factor, log, label
        ctx.set_materialize_grads(materialize)
        return tuple(x.clone() for _ in range(copies))

    @staticmethod
    def backward(ctx, *gradients):
        ctx.log.append((ctx.label, tuple(gradient is None for gradient in gradients)))
        given = [gradient for gradient in gradients if gradient is not None]
        gradient = None
        if given and ctx.factor is not None:
            gradient = sum(given[1:], given[0]) * ctx.factor
        return gradient, None, None, None, None, None


class Nested(torch.autograd.Function):
    """Identity whose backward runs `act`."""

    @staticmethod
    def forward(ctx, x, act):
        ctx.act = act
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            ctx.act()
        return gradient, None


class Builder:
    """A graph under construction: its values so far, and the log its nodes and hooks write to."""

    def __init__(self, recipe: Recipe):
        self.recipe, self.log = recipe, []
        generator = torch.Generator().manual_seed(recipe.seed)
        self.exact = len(recipe.devices) > 1
        self.leaves = []
        for number in range(recipe.leaves):
            value = torch.randn(SHAPE, dtype=torch.float64, generator=generator)
            value = value.sign() if self.exact else value.mul_(0.5)
            self.leaves.append(value.to(recipe.devices[number % len(recipe.devices)]).requires_grad_())
        self.pool = list(self.leaves)
        self.paths = [1] * len(self.pool)  # with several devices: how many paths lead to leaves at most
        self.handles = []
        self.table = torch.nn.Embedding(5, SHAPE[1], sparse=True, dtype=torch.float64)
        self.table.weight.data.normal_(generator=generator)

    # ---- steps. Each takes a generator and adds to the pool.
    def pick(self, draw: random.Random) -> int:
        """A value, more likely a recent one."""
        last = len(self.pool) - 1
        return last - min(last, int(draw.expovariate(0.15))) if draw.random() < 0.7 else draw.randint(0, last)

    def add(self, value: torch.Tensor, paths: int = 1) -> None:
        self.pool.append(value)
        self.paths.append(paths)

    def exact_step(self, draw: random.Random) -> None:
        i, j = self.pick(draw), self.pick(draw)
        a, b = self.pool[i], self.pool[j]
        if self.paths[i] + self.paths[j] > PATHS:
            return
        kind = draw.randrange(6)
        if kind == 0:
            self.add(-a, self.paths[i])
        elif kind == 1:
            self.add(a.to(draw.choice(self.recipe.devices)), self.paths[i])
        elif kind == 2 and "outputs" in self.recipe.features:
            rows = a.unbind()
            self.add(torch.stack([rows[draw.randrange(2)], rows[draw.randrange(2)]]), 2 * self.paths[i])
        elif kind == 3 and "functions" in self.recipe.features:
            factor = draw.choice([1.0, -1.0, None])
            self.add(Scaled.apply(a, 2, factor, [], None, True)[draw.randrange(2)], self.paths[i])
        elif kind == 4 and "hooks" in self.recipe.features and a.grad_fn is not None:
            a.register_hook(lambda gradient: None if gradient is None else -gradient)
        else:
            self.add(a + b.to(a.device) if kind % 2 else a - b.to(a.device), self.paths[i] + self.paths[j])

    def step(self, number: int) -> None:
        draw = random.Random((self.recipe.seed << 20) + number)
        if self.exact:
            self.exact_step(draw)
            return
        feature = draw.choice(("plain", "plain", "plain", *FEATURES))
        if feature != "plain" and feature not in self.recipe.features:
            feature = "plain"
        getattr(self, f"step_{feature}")(draw, number)

    def step_plain(self, draw: random.Random, number: int) -> None:
        a, b = self.pool[self.pick(draw)], self.pool[self.pick(draw)]
        self.add(
            draw.choice(
                [
                    lambda: a.sin(),
                    lambda: a.tanh(),
                    lambda: a * b.tanh(),
                    lambda: a + b,
                    lambda: (a - b) * 0.5,
                    lambda: a * 0.3 + b.cos(),
                    lambda: (a.tanh() @ b.tanh().mT) @ a * 0.1,
                    lambda: torch.where(a > b, a, b * 0.5),
                    lambda: a.detach() * b.sin(),
                ]
            )()
        )

    def step_views(self, draw: random.Random, number: int) -> None:
        a, b = self.pool[self.pick(draw)], self.pool[self.pick(draw)]
        base = a.clone()
        choice = draw.randrange(4)
        if choice == 0:
            base[draw.randrange(2)].mul_(b[0].tanh())
        elif choice == 1:
            base.view(-1)[1:4] = b.reshape(-1)[2:5]
        elif choice == 2:
            base.mT.add_(b.mT).mul_(0.5)
        else:
            left, right = base.split([1, 2], dim=1)
            base = torch.cat([right, left * 2], dim=1)
        self.add(base)

    def step_outputs(self, draw: random.Random, number: int) -> None:
        a, b = self.pool[self.pick(draw)], self.pool[self.pick(draw)]
        choice = draw.randrange(3)
        if choice == 0:
            rows = torch.stack([a, b, a * 0.5]).unbind()
            self.add(rows[draw.randrange(3)])
        elif choice == 1:
            values, _ = torch.stack([a, b]).max(0)
            self.add(values)
        else:
            deviation, mean = torch.std_mean(torch.stack([a, b, a + 1]), 0)
            self.add(mean if draw.random() < 0.5 else mean + deviation.clamp(min=0.1))

    def step_functions(self, draw: random.Random, number: int) -> None:
        copies, factor = draw.randint(1, 3), draw.choice([1.0, -0.5, 0.7, None])
        a = self.pool[self.pick(draw)]
        outputs = Scaled.apply(a, copies, factor, self.log, number, draw.random() < 0.5)
        for output in draw.sample(outputs, draw.randint(1, copies)):
            self.add(output)

    def step_hooks(self, draw: random.Random, number: int) -> None:
        a, log = self.pool[self.pick(draw)], self.log
        choice = draw.randrange(6)
        if choice == 0 and a.grad_fn is not None:
            a.register_hook(lambda gradient: None if gradient is None else gradient * 0.9)
        elif choice == 1:
            a.register_hook(lambda gradient: log.append((number, gradient is None)))
        elif choice == 2 and a.grad_fn is not None:
            a.retain_grad()
        elif choice == 3:
            leaf = draw.choice(self.leaves)
            leaf.register_post_accumulate_grad_hook(lambda leaf: log.append((number, "accumulated")))
        elif choice == 4 and a.grad_fn is not None:
            a.grad_fn.register_hook(lambda inputs, outputs: log.append((number, len(inputs), len(outputs))))
        else:
            several = [value for value in draw.sample(self.pool, min(3, len(self.pool))) if value.grad_fn is not None]
            if several and self.recipe.call != "capture inner":
                self.handles.append(
                    register_multi_grad_hook(
                        several, lambda grads: log.append((number, [grad is None for grad in grads]))
                    )
                )
        self.add(a * 1.1)

    def step_nested(self, draw: random.Random, number: int) -> None:
        a, shared, log = self.pool[self.pick(draw)], draw.choice(self.leaves), self.log
        choice = draw.randrange(4)
        own = torch.full(SHAPE, 0.5, dtype=torch.float64, requires_grad=True)

        def inner_backward():
            Log.apply(own.sin() * own, ("inner", number), log).sum().backward()

        def inner_grad():
            (gradient,) = torch.autograd.grad(Log.apply(own.exp(), ("grad", number), log).sum(), own)
            log.append(gradient.sum().item())

        def inner_shared():
            (shared.sin() * own).sum().backward()

        if choice == 3 and self.recipe.call in ("backward", "accumulate", "roots"):
            self.add(checkpoint(lambda value: value.sin() * shared, a, use_reentrant=True) if a.requires_grad else a)
        else:
            self.add(Nested.apply(a, (inner_backward, inner_grad, inner_shared)[choice % 3]))

    def step_checkpoint(self, draw: random.Random, number: int) -> None:
        a, b = self.pool[self.pick(draw)], self.pool[self.pick(draw)]
        self.add(checkpoint(lambda x, y: (x.sin() * y.cos()).tanh(), a, b, use_reentrant=False))

    def step_sparse(self, draw: random.Random, number: int) -> None:
        index = torch.tensor([draw.randrange(5), draw.randrange(5)])
        if draw.random() < 0.3:
            self.add(self.table.weight[1:3] * 0.5)
        self.add(self.table(index) * self.pool[self.pick(draw)].sin())

    def step_errors(self, draw: random.Random, number: int) -> None:
        a = self.pool[self.pick(draw)]

        def fail(*_):
            raise ValueError(number)

        if draw.random() < 0.9:  # few, so that most of a graph runs before one is met
            self.add(a * 0.9)
        elif draw.random() < 0.5 and a.grad_fn is not None:
            a.register_hook(fail)
        else:
            self.add(Nested.apply(a, fail))

    # ---- the backward
    def watch(self, roots: list[torch.Tensor]) -> None:
        """Logs nodes by their place in a traversal from the roots, as they run."""
        numbers: dict = {}
        waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
        log = self.log
        while waiting:
            node = waiting.pop()
            if node in numbers:
                continue
            numbers[node] = number = len(numbers)
            entry = (number, node.name())
            node.register_prehook(lambda gradients, entry=entry: log.append(entry))
            waiting.extend(below for below, _ in node.next_functions if below is not None)

    def roots(self) -> list[torch.Tensor]:
        draw = random.Random(self.recipe.seed)
        values = [value for value in self.pool[-8:] if value.requires_grad]
        chosen = draw.sample(values, min(3, len(values)))
        if self.recipe.call == "roots":
            return chosen
        device = self.recipe.devices[0]
        return [sum((value.to(device).sum() for value in chosen), torch.zeros((), dtype=torch.float64, device=device))]

    def backward(self) -> list[torch.Tensor | None]:
        draw, call = random.Random(self.recipe.seed + 1), self.recipe.call
        targets = self.leaves + [self.table.weight]
        roots = self.roots()
        if not roots or not roots[0].requires_grad:
            return []
        if self.recipe.watch:
            self.watch(roots)
        some = draw.sample(self.leaves, draw.randint(1, len(self.leaves)))
        if call == "grad":
            return list(torch.autograd.grad(roots, some, allow_unused=True))
        if call == "grad twice":
            first = torch.autograd.grad(roots, targets, allow_unused=True, retain_graph=True)
            return [*first, *torch.autograd.grad(roots, some, allow_unused=True)]
        if call == "capture inner":
            inner = [value for value in self.pool if value.grad_fn is not None]
            inner = draw.sample(inner, min(4, len(inner)))
            return list(torch.autograd.grad(roots, [*inner, *some], allow_unused=True))
        if call == "create_graph":
            first = torch.autograd.grad(roots, some, allow_unused=True, create_graph=True)
            again = [value for value in first if value is not None and value.requires_grad]
            if not again:
                return list(first)
            second = torch.autograd.grad(sum(value.sin().sum() for value in again), some, allow_unused=True)
            return [*(None if value is None else value.detach() for value in first), *second]
        if call == "backward inputs":
            roots[0].backward(inputs=some)
        elif call == "roots":
            torch.autograd.backward(roots, [torch.ones_like(root) * 0.5 for root in roots])
        elif call == "accumulate":
            roots[0].backward(retain_graph=True)
            roots[0].backward()
        else:
            roots[0].backward()
        return [target.grad for target in targets] + [value.grad for value in self.pool if value.retains_grad]


def run(recipe: Recipe, collect: Callable[[], object]) -> Outcome:
    """Builds the recipe's graph and runs its backward; `collect` frees cycles before live tensors are counted."""
    with warnings.catch_warnings(action="ignore"), torch.autograd.set_multithreading_enabled(recipe.threads):
        builder = Builder(recipe)
        for number in range(recipe.steps):
            builder.step(number)
        errors, gradients = [], []
        for _ in range(2):
            try:
                gradients = builder.backward()
                break
            except Exception as raised:
                errors.append(f"{type(raised).__name__}: {raised}")
        else:
            gradients = [leaf.grad for leaf in builder.leaves]
        gradients = [None if gradient is None else gradient.detach().clone() for gradient in gradients]
        log = [entry for entry in builder.log if not isinstance(entry, float)] + [
            entry for entry in builder.log if isinstance(entry, float)
        ]
        for value in builder.pool:  # under create_graph a gradient refers to what it is the gradient of
            if value.is_leaf or value.retains_grad:
                value.grad = None
        for handle in builder.handles:  # a multi-grad hook refers to its nodes, which refer to it
            handle.remove()
        alive = [weakref.ref(value) for value in builder.leaves]
        del builder
        value = handle = None
    leaked = sum(reference() is not None for reference in alive)
    if leaked:
        collect()
        leaked = sum(reference() is not None for reference in alive)
    return Outcome(gradients, log, errors, leaked)
