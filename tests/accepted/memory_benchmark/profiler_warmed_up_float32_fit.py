import torch


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    def inputs():
        return [torch.randn(1, num_heads, seq_len, d_model // num_heads, device=device) for _ in "qkv"]

    attention(*inputs())  # the first call may load something
    with torch.autograd.profiler.profile(profile_memory=True, use_device=None) as record:
        output = attention(*inputs())
        del output
    steps = []
    for event in record.kineto_results.events():
        if event.name() == "[memory]":
            steps.append((event.start_ns(), event.nbytes()))
    steps.sort()
    level, highest = 0, 0
    for _, change in steps:
        level += change
        if level > highest:
            highest = level
    return int(highest)


def growth_exponent(seq_lens, sizes):
    x, y = torch.tensor(seq_lens).float().log(), torch.tensor(sizes).float().log()
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())
