# control: of 21 layer normalisation, done
# task: layernorm_wide
# expect: pass
# mechanism: mean and variance of each row, by hand

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-5)
