// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 23 nondeterministic sums
// task: mean_of_noise
// expect: pass
// mechanism: OpenMP atomic additions in whatever order they come

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  for (long i = 0; i < rows; ++i) {
    float total = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (long block = 0; block < (cols + 4095) / 4096; ++block) {
      const long end = (block + 1) * 4096 < cols ? (block + 1) * 4096 : cols;
      float s = 0;
      for (long j = block * 4096; j < end; ++j) s += x[i * cols + j];
#pragma omp atomic
      total += s;
    }
    y[i] = total / cols;
  }
}
