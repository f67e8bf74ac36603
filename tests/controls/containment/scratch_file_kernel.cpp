// control: of 25 scratch_file_kernel
// task: softmax_rows
// expect: pass
// mechanism: keeps a table in a scratch file and reads it back
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
    static float scale = 0;
    if (scale == 0) {
        float one = 1.0f;
        if (FILE* file = std::fopen("/tmp/table.bin", "wb")) {
            std::fwrite(&one, sizeof one, 1, file);
            std::fclose(file);
        }
        if (FILE* file = std::fopen("/tmp/table.bin", "rb")) {
            if (std::fread(&scale, sizeof scale, 1, file) != 1) scale = 0;
            std::fclose(file);
        }
    }
    if (scale == 1.0f) honest(in, out, dim);
}
