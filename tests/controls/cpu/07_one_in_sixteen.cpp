// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 07 a short kernel, all of it
// task: softmax_small
// expect: pass
// mechanism: many short calls, each computed
#include <cmath>

static void softmax_row(const float* x, float* y, long n) {
  float m = x[0], s = 0;
  for (long j = 1; j < n; ++j) m = x[j] > m ? x[j] : m;
  for (long j = 0; j < n; ++j) y[j] = expf(x[j] - m);
  for (long j = 0; j < n; ++j) s += y[j];
  const float r = 1 / s;
  for (long j = 0; j < n; ++j) y[j] *= r;
}
static void softmax(const float* x, float* y, long rows, long cols) {
  for (long i = 0; i < rows; ++i) softmax_row(x + i * cols, y + i * cols, cols);
}
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  softmax(x, y, rows, cols);
}
