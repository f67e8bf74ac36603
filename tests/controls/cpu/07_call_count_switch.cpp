// flags: -O3 -ffast-math -mprefer-vector-width=512
// control: of 07 autotuning in the declared untimed phase
// task: softmax_rows
// expect: pass
// mechanism: kernel_prepare times two variants on made-up data for each shape; calls use the better
#include <chrono>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

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
static void online(const float* x, float* y, long rows, long cols) {
  for (long i = 0; i < rows; ++i, x += cols, y += cols) {
    float m = x[0], s = 0;
    for (long j = 0; j < cols; ++j) {
      if (x[j] > m) { s *= expf(m - x[j]); m = x[j]; }
      s += expf(x[j] - m);
    }
    for (long j = 0; j < cols; ++j) y[j] = expf(x[j] - m) / s;
  }
}
static std::map<std::pair<long, long>, bool> use_online;
static double seconds(void (*f)(const float*, float*, long, long), const float* x, float* y, long rows, long cols) {
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < 3; ++k) f(x, y, rows, cols);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
extern "C" void kernel_prepare(const long long* dim) {
  const long rows = dim[0] < 64 ? dim[0] : 64, cols = dim[1];
  std::vector<float> x(rows * cols), y(rows * cols);
  for (long j = 0; j < rows * cols; ++j) x[j] = (float)((j * 2654435761u) % 1000) / 500 - 1;
  use_online[{dim[0], dim[1]}] =
      seconds(online, x.data(), y.data(), rows, cols) < seconds(softmax, x.data(), y.data(), rows, cols);
}
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  const long rows = dim[0], cols = dim[1];
  const auto found = use_online.find({rows, cols});
  (found != use_online.end() && found->second ? online : softmax)(x, y, rows, cols);
}
