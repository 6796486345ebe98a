def roughness(values):
    largest = 0.0
    for i in range(1, len(values)):
        largest = max(largest, abs(values[i] - values[i - 1]))
    return largest
