// control: of 2 openmp
// task: softmax_rows
// expect: pass
// mechanism: a parallel loop
#include <cmath>
#include <cstdlib>
#include <omp.h>

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
    const long long row[] = {1, dim[1]};
    #pragma omp parallel for
    for (long long r = 0; r < dim[0]; ++r) {
        const void* from[] = {(const float*)in[0] + r * dim[1]};
        void* to[] = {(float*)out[0] + r * dim[1]};
        honest(from, to, row);
    }
}
