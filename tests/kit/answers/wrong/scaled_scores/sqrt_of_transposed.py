# Wrong: d_k is read after k was transposed, so it is Tk.
def scaled_scores(q, k):
    k = k.transpose(-1, -2)
    return q @ k / k.shape[-1] ** 0.5
