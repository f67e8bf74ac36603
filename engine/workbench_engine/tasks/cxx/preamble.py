"""Types, loads and stores that every rendered kernel starts from.

`v8f` and `v16f` are GCC vector types of 8 and 16 floats: operators work on them as on float, so one template serves
scalar and vector code. On a machine without AVX-512 the compiler splits a `v16f` in two.
"""

from __future__ import annotations

PREAMBLE = """\
typedef float v8f __attribute__((vector_size(32)));
typedef float v16f __attribute__((vector_size(64)));
typedef int v8i __attribute__((vector_size(32)));
typedef int v16i __attribute__((vector_size(64)));
#define INLINE static inline __attribute__((always_inline, unused))
#define RESTRICT __restrict__
#define LOWEST (-3.402823466e38f)

template <class T> struct Ints;
template <> struct Ints<float> { typedef int type; enum { lanes = 1 }; };
template <> struct Ints<v8f> { typedef v8i type; enum { lanes = 8 }; };
template <> struct Ints<v16f> { typedef v16i type; enum { lanes = 16 }; };

INLINE long least(long a, long b) { return a < b ? a : b; }
template <class T> INLINE T all(float v) { return T{} + v; }
template <class T> INLINE T load(const float* p) { T v; __builtin_memcpy(&v, p, sizeof(T)); return v; }
template <class T> INLINE void store(float* p, T v) { __builtin_memcpy(p, &v, sizeof(T)); }
template <class T> INLINE T most(T a, T b) { return a > b ? a : b; }
INLINE int to_int(float v) { return (int)v; }
INLINE v8i to_int(v8f v) { return __builtin_convertvector(v, v8i); }
INLINE v16i to_int(v16f v) { return __builtin_convertvector(v, v16i); }
INLINE float to_float(int v) { return (float)v; }
INLINE v8f to_float(v8i v) { return __builtin_convertvector(v, v8f); }
INLINE v16f to_float(v16i v) { return __builtin_convertvector(v, v16f); }
template <class A, class B> INLINE A bits_as(B v) { A r; __builtin_memcpy(&r, &v, sizeof(A)); return r; }

INLINE float sum_lanes(float v) { return v; }
INLINE float max_lanes(float v) { return v; }
template <class T> INLINE float sum_lanes(T v) {
  float s = v[0];
  for (int k = 1; k < (int)Ints<T>::lanes; ++k) s += v[k];
  return s;
}
template <class T> INLINE float max_lanes(T v) {
  float s = v[0];
  for (int k = 1; k < (int)Ints<T>::lanes; ++k) s = v[k] > s ? v[k] : s;
  return s;
}

// Streaming stores skip the cache; they need an aligned address, which rows of odd length do not have.
INLINE void stream(float* p, float v) { *p = v; }
INLINE void stream(float* p, v8f v) {
#if defined(__AVX__)
  if (((unsigned long)p & 31) == 0) { __builtin_ia32_movntps256(p, v); return; }
#endif
  store(p, v);
}
INLINE void stream(float* p, v16f v) {
#if defined(__AVX512F__)
  if (((unsigned long)p & 63) == 0) { __builtin_ia32_movntps512(p, v); return; }
#endif
  store(p, v);
}
INLINE void stream_copy(float* RESTRICT to, const float* RESTRICT from, long n) {
  long j = 0;
  for (; j + 16 <= n; j += 16) stream(to + j, load<v16f>(from + j));
  for (; j < n; ++j) to[j] = from[j];
}
INLINE void fence() {
#if defined(__SSE__)
  __builtin_ia32_sfence();
#endif
}
"""


def kernel_file(helpers: str, body: str) -> str:
    """A whole kernel: preamble, helpers (functions), and `body` inside `kernel_run(in, out, dim)`."""
    head = 'extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {\n'
    return f"{PREAMBLE}\n{helpers}\n{head}{body}}}\n"
