// flags: -O3
// control: of 06 the same function, computed
// task: log_gamma
// expect: pass
// mechanism: every element is computed in every call
#include <cmath>

static float one(float x) { return lgammaf(fabsf(x) + 0.5f); }

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  for (long j = 0; j < rows * cols; ++j) y[j] = one(x[j]);
}
