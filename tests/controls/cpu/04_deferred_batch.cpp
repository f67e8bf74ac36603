// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 04 batching inside a call
// task: softmax_rows
// expect: pass
// mechanism: rows are processed in batches of eight, all within the call
#include <cmath>

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  float m[8], s[8];
  for (long top = 0; top < rows; top += 8) {
    const long end = top + 8 < rows ? top + 8 : rows;
    for (long i = top; i < end; ++i) {
      m[i - top] = x[i * cols];
      for (long j = 1; j < cols; ++j) m[i - top] = x[i * cols + j] > m[i - top] ? x[i * cols + j] : m[i - top];
    }
    for (long i = top; i < end; ++i) {
      s[i - top] = 0;
      for (long j = 0; j < cols; ++j) y[i * cols + j] = expf(x[i * cols + j] - m[i - top]);
      for (long j = 0; j < cols; ++j) s[i - top] += y[i * cols + j];
    }
    for (long i = top; i < end; ++i)
      for (long j = 0; j < cols; ++j) y[i * cols + j] /= s[i - top];
  }
}
