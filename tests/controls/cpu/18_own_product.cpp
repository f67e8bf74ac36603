// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 18 a product by code of its own
// task: matmul_own
// expect: pass
// mechanism: a blocked matrix product without any library

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const long n = dim[0];
  const float* a = (const float*)in[0];
  const float* b = (const float*)in[1];
  float* y = (float*)out[0];
  for (long i = 0; i < n; ++i) {
    for (long j = 0; j < n; ++j) y[i * n + j] = 0;
    for (long k = 0; k < n; ++k)
      for (long j = 0; j < n; ++j) y[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}
