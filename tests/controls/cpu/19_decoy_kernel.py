# control: of 19 a kernel that does the work
# task: softmax_own
# expect: pass
# mechanism: compiled code of its own writes the whole output

import ctypes
import os
import subprocess
import tempfile

import torch

SOURCE = r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long cols) {
  for (long i = 0; i < rows; ++i, x += cols, y += cols) {
    float m = x[0], s = 0;
    for (long j = 1; j < cols; ++j) m = x[j] > m ? x[j] : m;
    for (long j = 0; j < cols; ++j) y[j] = expf(x[j] - m);
    for (long j = 0; j < cols; ++j) s += y[j];
    const float r = 1 / s;
    for (long j = 0; j < cols; ++j) y[j] *= r;
  }
}
"""
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "own.cpp"), "w") as file:
    file.write(SOURCE)
# Linked apart: a library linked with -ffast-math switches denormals off for whoever loads it.
subprocess.run(["g++", "-O3", "-ffast-math", "-march=native", "-fPIC", "-c", "own.cpp"], cwd=folder, check=True)
subprocess.run(["g++", "-shared", "own.o", "-o", "own.so"], cwd=folder, check=True)
softmax = ctypes.CDLL(os.path.join(folder, "own.so")).softmax
softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax(x.data_ptr(), out.data_ptr(), *x.shape)
        return out
