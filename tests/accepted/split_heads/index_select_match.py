import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    match divmod(x.shape[-1], num_heads):
        case (d_k, 0):
            index = torch.arange(x.shape[-1], device=x.device).view(num_heads, d_k)  # (H, d_k)
            return x[:, :, index].permute(0, 2, 1, 3)
        case _:
            raise ValueError("d_model has to be a multiple of num_heads")
