"""Inputs of which a graph replaces some elements, as caches are: the rest is neither read nor copied."""

import unittest

import torch
from with_torch import WithTorch


def places(*numbers):
    return torch.tensor(numbers)


def along_the_middle(cache, new, at):
    cache.index_copy_(2, at, new)
    return cache.sum()


def by_index(cache, new, at):
    cache[:, :, at] = new
    return cache[:, :, :2].clone()


def by_scatter(cache, new, at):
    cache.scatter_(2, at.view(1, 1, -1, 1).expand_as(new), new)
    return cache.amax(2)


def by_a_slice(cache, new, at):
    cache[:, :, 3:3 + new.shape[2]] = new * 2
    return cache.mean(), at + 1


def by_one_number(cache, new, at):
    cache[:, :, 5] = new[:, :, 0]
    return (cache * 2).sum(2)


def at_rows(cache, new, at):
    cache[torch.arange(2, device=cache.device), at[:1] % 3] = new[:, 0, :1]
    return cache.sum(0)


def at_rows_and_places(cache, new, at):
    cache[torch.arange(2, device=cache.device), :, at.repeat(2)[:2]] = new[:, :, 0]
    return cache.sum(1)


def at_places_of_heads(cache, new, at):
    cache[:, torch.tensor([[2], [0]], device=cache.device), at[:1]] = new[:, :2, :1]
    cache.select(1, 1)[:, 4] = 3
    return cache.sum(0)


def old_and_new(cache, new, at):
    old, rows = cache.clone(), cache[:, :, :3] + 1
    cache.index_copy_(2, at, new)
    return old, rows, cache.clone(), cache.sum(1)


def from_itself(cache, new, at):
    cache.index_copy_(2, at, cache[:, :, 1:1 + at.shape[0]] + new)
    return cache.sum(0)


def twice(cache, new, at):
    cache.index_copy_(2, at, new)
    cache.index_copy_(2, (at + 2) % 12, new * 3)
    return cache.sum(0)


def added(cache, new, at):
    cache.index_add_(2, at, new)
    return cache.sum(0)


def then_doubled(cache, new, at):
    cache.index_copy_(2, at, new)
    cache.mul_(2)
    return cache.sum(0)


def shown(cache, new, at):
    cache.index_copy_(2, at, new)
    return cache, cache[:, 1], cache.transpose(0, 1)


WAYS = (along_the_middle, by_index, by_scatter, by_a_slice, by_one_number, at_rows, at_rows_and_places, at_places_of_heads, old_and_new, from_itself, twice, added, then_doubled, shown)


class WrittenInputs(WithTorch):
    def check_way(self, way, cache_of, new=None):
        torch._dynamo.reset()
        compiled = self.compiled(way)
        ours, theirs = cache_of(), cache_of()
        with torch.no_grad():
            for step in range(3):
                value = torch.randn(2, 3, 1, 4) if new is None else new()
                at = places(*[(7 * step + 1 + i) % 12 for i in range(value.shape[2])])
                with self.subTest(way=way.__name__, step=step):
                    torch.testing.assert_close(compiled(ours, value, at), way(theirs, value, at))  # strides may differ
                    self.assert_same(ours, theirs, 1e-6)

    def test_each_way(self):
        for way in WAYS:
            self.check_way(way, lambda: torch.zeros(2, 3, 12, 4))
            self.check_way(way, lambda: torch.zeros(2, 3, 12, 4), lambda: torch.randn(2, 3, 2, 4))

    def test_caches_that_lie_otherwise(self):
        for cache_of in (
            lambda: torch.zeros(2, 3, 12, 8)[..., ::2],
            lambda: torch.zeros(12, 3, 2, 4).permute(2, 1, 0, 3),
            lambda: torch.zeros(2, 12, 3, 4).transpose(1, 2),
            lambda: torch.zeros(1 + 2 * 3 * 12 * 4)[1:].view(2, 3, 12, 4),
        ):
            for way in (along_the_middle, by_index, by_a_slice, old_and_new):
                self.check_way(way, cache_of)

    def test_one_memory_in_two_inputs(self):
        def way(cache, other, new, at):
            cache.index_copy_(2, at, new)
            return other.sum(2), cache.sum()

        compiled = self.compiled(way)
        with torch.no_grad():
            for _ in range(2):
                ours, new = torch.randn(2, 3, 12, 4), torch.randn(2, 3, 1, 4)
                theirs = ours.clone()
                self.assert_same(compiled(ours, ours[:, 1:], new, places(4)), way(theirs, theirs[:, 1:], new, places(4)))
                self.assert_same(ours, theirs, 0)

    def test_what_was_there_is_not_read(self):
        """Buffers that are results of operations, as those of power iterations are."""
        def way(x, last, norms):
            torch.sin(x, out=last)
            torch.nn.functional.normalize(x, dim=0, out=norms)
            return x * 2

        compiled = self.compiled(way)
        (ours, norms), (theirs, others) = [(torch.zeros(3, 4), torch.zeros(3, 4)) for _ in range(2)]
        with torch.no_grad():
            for _ in range(2):
                x = torch.randn(3, 4)
                self.assert_same(compiled(x, ours, norms), way(x, theirs, others))
                self.assert_same([ours, norms], [theirs, others], 1e-6)

    def test_places_that_are_numbers(self):
        def way(cache, new, at: int):
            cache[:, :, at:at + 1] = new
            return cache.sum()

        compiled = self.compiled(way)
        ours, theirs = torch.zeros(2, 3, 12, 4), torch.zeros(2, 3, 12, 4)
        with torch.no_grad():
            for at in (3, 4, 5, 11, 0, 7):
                new = torch.randn(2, 3, 1, 4)
                self.assert_same(compiled(ours, new, at), way(theirs, new, at))
                self.assert_same(ours, theirs, 0)

    def test_caches_of_other_types(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int64, torch.bool):
            with self.subTest(dtype=dtype):
                compiled = self.compiled(by_index)
                ours, theirs = torch.zeros(2, 3, 12, 4, dtype=dtype), torch.zeros(2, 3, 12, 4, dtype=dtype)
                new = torch.randint(0, 5, (2, 3, 1, 4)).to(dtype)
                for at in (2, 9):
                    self.assert_same(compiled(ours, new, places(at)), by_index(theirs, new, places(at)), 0)
                    self.assert_same(ours, theirs, 0)


class Steps(WithTorch):
    """Of optimisers: results of one kernel are written over inputs that it reads."""

    def test_optimisers(self):
        kinds = {"SGD": {"momentum": 0.9, "nesterov": True}, "AdamW": {}, "RMSprop": {"momentum": 0.5}, "Adagrad": {}, "NAdam": {}, "Adam": {"amsgrad": True}}
        for name, options in kinds.items():
            torch._dynamo.reset()
            sides = []
            for _ in range(2):
                torch.manual_seed(1)
                parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in ((33, 64), (64,), (7, 5), (1,))]
                sides.append((parameters, getattr(torch.optim, name)(parameters, lr=0.01, **options)))
            compiled = self.compiled(sides[0][1].step, strict=False)
            for step in range(5):
                for pair in zip(sides[0][0], sides[1][0]):
                    slope = torch.randn_like(pair[0])
                    for each in pair:
                        each.grad = slope.clone()
                addresses = [each.data_ptr() for each in sides[0][0]]
                compiled()
                sides[1][1].step()
                self.assertEqual([each.data_ptr() for each in sides[0][0]], addresses)
                with self.subTest(optimiser=name, step=step):
                    for one, other in zip(sides[0][0], sides[1][0]):
                        torch.testing.assert_close(one, other)


class OnGpu:
    mode = "default"

    def setUp(self):
        super().setUp()
        torch.set_default_device("cuda")
        self.addCleanup(torch.set_default_device, None)

    def compiled(self, function, **options):
        return super().compiled(function, **{"compile.mode": self.mode, **options})


@unittest.skipUnless(torch.cuda.is_available(), "torch sees no GPU")
class WrittenOnGpu(OnGpu, WrittenInputs):
    pass


@unittest.skipUnless(torch.cuda.is_available(), "torch sees no GPU")
class WrittenInRecordedRuns(OnGpu, WrittenInputs):
    mode = "reduce-overhead"


@unittest.skipUnless(torch.cuda.is_available(), "torch sees no GPU")
class StepsOnGpu(OnGpu, Steps):
    pass


if __name__ == "__main__":
    unittest.main()
