# It asserts nothing
def test_it(make_attention):
    make_attention(8, 2)
