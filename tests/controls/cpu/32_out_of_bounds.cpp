// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 32 vectors with a tail
// task: softmax_rows
// expect: pass
// mechanism: whole vectors up to the last one, single elements after
#include <cmath>
#include <cstring>

typedef float v16 __attribute__((vector_size(64)));
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  for (long i = 0; i < rows; ++i, x += cols, y += cols) {
    float m = x[0], s = 0;
    for (long j = 1; j < cols; ++j) m = x[j] > m ? x[j] : m;
    for (long j = 0; j < cols; ++j) y[j] = expf(x[j] - m);
    for (long j = 0; j < cols; ++j) s += y[j];
    const float r = 1 / s;
    long j = 0;
    for (; j + 16 <= cols; j += 16) {
      v16 v;
      memcpy(&v, y + j, 64);
      v *= r;
      memcpy(y + j, &v, 64);
    }
    for (; j < cols; ++j) y[j] *= r;
  }
}
