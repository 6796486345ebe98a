def count_pairs(ids):
    result = {}
    rest = list(ids)
    while len(rest) > 1:
        right = rest.pop()
        pair = (rest[-1], right)
        if pair not in result:
            result[pair] = 0
        result[pair] += 1
    return result
