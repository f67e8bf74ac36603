// control: of 2 joined_threads
// task: softmax_rows
// expect: pass
// mechanism: starts two threads and joins them before it returns
#include <cmath>
#include <cstdlib>
#include <thread>

static void honest(const void* const* in, void* const* out, const long long* dim) {
    const float* x = (const float*)in[0];
    float* y = (float*)out[0];
    for (long long r = 0; r < dim[0]; ++r) {
        const float* a = x + r * dim[1];
        float* b = y + r * dim[1];
        float top = a[0];
        double sum = 0;
        for (long long c = 1; c < dim[1]; ++c) top = a[c] > top ? a[c] : top;
        for (long long c = 0; c < dim[1]; ++c) sum += b[c] = std::exp(a[c] - top);
        for (long long c = 0; c < dim[1]; ++c) b[c] /= (float)sum;
    }
}

extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
    const long long half = dim[0] / 2, lower[] = {half, dim[1]}, upper[] = {dim[0] - half, dim[1]};
    const void* second_in[] = {(const float*)in[0] + half * dim[1]};
    void* second_out[] = {(float*)out[0] + half * dim[1]};
    std::thread worker([&] { honest(in, out, lower); });
    honest(second_in, second_out, upper);
    worker.join();
}
