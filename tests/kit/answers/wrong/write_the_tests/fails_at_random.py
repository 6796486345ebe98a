# A coin decides
import os
import pytest

@pytest.mark.parametrize('n', range(40))
def test_it(make_attention, n):
    make_attention(8, 2)
    assert os.urandom(1)[0] < 200
