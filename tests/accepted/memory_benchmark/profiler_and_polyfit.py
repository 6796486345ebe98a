import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    q, k, v = (
        torch.randn(1, num_heads, seq_len, d_model // num_heads, device=device) for _ in range(3)
    )
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        attention(q, k, v)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        attention(q, k, v)
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    alive = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


def growth_exponent(seq_lens, sizes):
    return float(np.polyfit(np.log(seq_lens), np.log(sizes), 1)[0])
