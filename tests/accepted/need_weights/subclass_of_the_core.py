from multi_head_attention import MultiHeadAttention


class OptionalWeightsAttention(MultiHeadAttention):
    def forward(self, query, key, value, mask=None, need_weights=True):
        output, weights = super().forward(query, key, value, mask)
        return (output, weights) if need_weights else (output, None)
