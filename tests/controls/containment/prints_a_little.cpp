// control: of 23 prints_a_little
// task: softmax_rows
// expect: pass
// mechanism: prints one line at its first call
#include <cmath>
#include <cstdlib>
#include <cstdio>

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
    static bool said = false;
    if (!said) std::printf("softmax of %lld rows\n", dim[0]);
    said = true;
    honest(in, out, dim);
}
