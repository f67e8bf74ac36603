// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 21 the mean, taken
// task: mean_of_noise
// expect: pass
// mechanism: every element of a long row is added

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  for (long i = 0; i < rows; ++i, x += cols) {
    float s = 0;
    for (long j = 0; j < cols; ++j) s += x[j];
    y[i] = s / cols;
  }
}
