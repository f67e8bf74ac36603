# control: of 15 builds_its_kernel
# task: softmax_rows
# expect: pass
# mechanism: builds its kernel with the compiler while it is set up, and calls it
import ctypes
import subprocess

import torch
from torch import nn


SOURCE = r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long cols) {
    for (long r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (long c = 1; c < cols; ++c) top = x[c] > top ? x[c] : top;
        for (long c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
        for (long c = 0; c < cols; ++c) y[c] /= (float)sum;
    }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with open("/tmp/softmax.cpp", "w") as file:
            file.write(SOURCE)
        command = ["g++", "-O3", "-shared", "-fPIC", "/tmp/softmax.cpp", "-o", "/tmp/softmax.so"]
        subprocess.run(command, check=True)
        self.run = ctypes.CDLL("/tmp/softmax.so").softmax
        self.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]

    def forward(self, x):
        y = torch.empty_like(x)
        self.run(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
