def turned(k):
    return swapped(k)


def swapped(k):
    return k.transpose(7, 8)
