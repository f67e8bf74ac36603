// flags: -O3
// control: of 22 more precise than asked
// task: softmax_rows
// expect: pass
// mechanism: sums in double
#include <cmath>

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  for (long i = 0; i < rows; ++i, x += cols, y += cols) {
    float m = x[0];
    double s = 0;
    for (long j = 1; j < cols; ++j) m = x[j] > m ? x[j] : m;
    for (long j = 0; j < cols; ++j) s += exp((double)x[j] - m);
    for (long j = 0; j < cols; ++j) y[j] = (float)(exp((double)x[j] - m) / s);
  }
}
