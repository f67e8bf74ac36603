// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 05 weights folded in the call
// task: linear_sum
// expect: pass
// mechanism: column sums of the weight, anew in each call
#include <vector>

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  const float* weight = (const float*)in[1];
  float* y = (float*)out[0];
  const long batch = dim[0], inner = dim[1], outer = dim[2];
  std::vector<float> sums(inner, 0.0f);
  for (long o = 0; o < outer; ++o)
    for (long k = 0; k < inner; ++k) sums[k] += weight[o * inner + k];
  for (long i = 0; i < batch; ++i) {
    float s = 0;
    for (long k = 0; k < inner; ++k) s += x[i * inner + k] * sums[k];
    y[i] = s * 0.75f;
  }
}
