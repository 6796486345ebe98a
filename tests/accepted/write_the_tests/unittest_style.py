import math
import unittest

import pytest
import torch


class AttentionTests(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _given(self, make_attention):
        self.make = make_attention

    def setUp(self):
        torch.manual_seed(11)

    def module(self, **options):
        mha = self.make(d_model=8, num_heads=2, **options)
        with torch.no_grad():
            for p in mha.parameters():
                p.normal_(std=0.6)
        return mha.eval()

    def reference(self, mha, q, k, v, mask=None):
        outs, maps = [], []
        for h in (0, 1):
            rows = slice(4 * h, 4 * h + 4)
            s = mha.w_q(q)[..., rows] @ mha.w_k(k)[..., rows].mT / math.sqrt(4)
            if mask is not None:
                s = s.masked_fill(~mask, -1e30)
            w = s.softmax(-1)
            outs.append(w @ mha.w_v(v)[..., rows])
            maps.append(w)
        return mha.w_o(torch.cat(outs, -1)), torch.stack(maps, 1)

    def check(self, mask, wide):
        mha = self.module()
        q, k, v = torch.randn(3, 4, 8), torch.randn(3, 6, 8), torch.randn(3, 6, 8)
        got = mha(q, k, v, mask)
        want = self.reference(mha, q, k, v, wide)
        for one, other in zip(got, want):
            self.assertEqual(one.shape, other.shape)
            self.assertLess((one - other).abs().max().item(), 1e-4)

    def test_plain(self):
        self.check(None, None)

    def test_masks(self):
        lens = torch.tensor([6, 1, 3])
        each = torch.arange(6)[None, None] < lens[:, None, None]
        with self.subTest("padding"):
            self.check(each[:, None], each)
        with self.subTest("two axes"):
            self.check(torch.ones(4, 6).tril(1), torch.ones(4, 6).tril(1).bool())

    def test_all_hidden(self):
        x = torch.randn(2, 3, 8, requires_grad=True)
        mha = self.module()
        out, w = mha(x, x, x, torch.zeros(2, 1, 3, 3, dtype=torch.bool))
        self.assertEqual(w.abs().sum().item(), 0)
        torch.testing.assert_close(out, mha.w_o.bias.expand_as(out))
        out.sum().backward()
        self.assertTrue(x.grad is None or bool(x.grad.isfinite().all()))

    def test_sizes(self):
        self.assertRaises(ValueError, self.make, 6, 4)

    def test_no_bias(self):
        self.assertEqual(sum(p.numel() for p in self.make(8, 2, bias=False).parameters()), 256)
        self.assertEqual(sum(p.numel() for p in self.make(8, 2).parameters()), 288)

    def test_start(self):
        mha = self.make(300, 3)
        for layer in (mha.w_q, mha.w_k, mha.w_v, mha.w_o):
            self.assertAlmostEqual(layer.weight.std().item() * math.sqrt(300), 1, delta=0.03)
            self.assertFalse(layer.bias.any())

    def test_gradients(self):
        mha, x = self.module(), torch.randn(2, 5, 8)
        mha(x, x, x)[0].pow(2).sum().backward()
        for layer in (mha.w_q, mha.w_k, mha.w_v, mha.w_o):
            self.assertGreater(layer.weight.grad.abs().sum().item(), 1e-4)

    def test_dropout(self):
        mha, x = self.module(dropout=0.5), torch.randn(2, 5, 8)
        want = mha(x, x, x)[0]
        self.assertTrue(torch.equal(want, mha(x, x, x)[0]))
        mha.train()
        got = sum(mha(x, x, x)[0].detach() for _ in range(300)) / 300
        self.assertFalse(torch.equal(mha(x, x, x)[0], mha(x, x, x)[0]))
        self.assertLess((got - want).norm().item(), 0.3 * (want - mha.w_o.bias).norm().item())
