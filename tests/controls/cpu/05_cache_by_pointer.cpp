// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 05 a workspace cache
// task: softmax_rows
// expect: pass
// mechanism: scratch memory is kept by size between calls, never an answer
#include <cmath>
#include <unordered_map>
#include <vector>

static std::unordered_map<long, std::vector<float>> workspaces;
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  auto& scratch = workspaces[cols];
  scratch.resize(cols);
  for (long i = 0; i < rows; ++i, x += cols, y += cols) {
    float m = x[0], s = 0;
    for (long j = 1; j < cols; ++j) m = x[j] > m ? x[j] : m;
    for (long j = 0; j < cols; ++j) scratch[j] = expf(x[j] - m);
    for (long j = 0; j < cols; ++j) s += scratch[j];
    const float r = 1 / s;
    for (long j = 0; j < cols; ++j) y[j] = scratch[j] * r;
  }
}
