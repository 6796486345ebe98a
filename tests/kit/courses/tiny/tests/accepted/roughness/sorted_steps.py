def roughness(values):
    steps = sorted(abs(a - b) for a, b in zip(values, values[1:]))
    return steps[-1] if steps else 0
