"""exp, log, tanh and erf, each in several precisions, for float, v8f and v16f alike.

Coefficients are our own minimax fits (reweighted least squares on Chebyshev nodes); the error beside each is the fit's,
in exact arithmetic. The cheapest variants are too coarse for an fp32 tolerance: a search has to find that out.
The range reductions use conversions, never the add-a-big-number trick, so that -ffast-math cannot fold them away.
"""

from __future__ import annotations

EXP = ("libm", "poly6", "poly5", "poly5_flush", "poly4")
"""Fit errors, relative: poly6 3e-9, poly5 8e-8, poly4 3e-6. `_flush` returns 0 below exp(-87)."""
TANH = ("libm", "split", "exp", "rational")
"""split: odd polynomial near 0, else through exp; exp: through exp alone (loses digits near 0); rational: 2e-3 off."""
ERF = ("libm", "split", "erfcx", "erfcx7", "erfcx5")
"""split: odd polynomial below 1, else erfcx; erfcx: exp(-x^2) times a polynomial of 1/(1 + x/2); erfcx7 and
erfcx5: a shorter polynomial, 4e-7 and 2e-5 off."""
LOG = ("libm", "poly7", "poly5", "poly3")
"""Relative fit errors of log(1 + f): poly7 6e-9, poly5 3e-7, poly3 1e-5."""

_EXP_POLY = {
    "6": (1.0, 1.00000004, 0.49999992, 0.166664182, 0.0416682381, 0.00837498098, 0.00138366339),
    "5": (1.00000007, 0.999999688, 0.499988861, 0.16667582, 0.0419163716, 0.00829750926),
    "4": (0.999999253, 0.999963115, 0.500043938, 0.16791401, 0.0414577542),
}
_LOG_POLY = {
    "7": (
        0.333333167,
        -0.250008104,
        0.200022861,
        -0.166245536,
        0.141811963,
        -0.131287641,
        0.1288162,
        -0.0785955184,
    ),
    "5": (0.333346629, -0.249842314, 0.199086447, -0.171023878, 0.161540893, -0.104875935),
    "3": (0.33275787, -0.252155326, 0.219152933, -0.149762105),
}
_TANH_POLY = (-0.333332629, 0.133308997, -0.0536929645, 0.0204833065, -0.00552862461)
_ERF_POLY = (1.12837917, -0.376126271, 0.112836002, -0.0268544446, 0.00518953534, -0.000802084128, 7.88911954e-05)
_ERFCX9 = (
    -4.60637335e-06,
    0.282190811,
    0.281379518,
    0.248357494,
    0.185750966,
    0.00807610524,
    0.232711895,
    -0.450606069,
    0.267978577,
    -0.0558347267,
)
_ERFCX7 = (
    -3.56623913e-05,
    0.283003283,
    0.272508616,
    0.301401786,
    -0.00598394352,
    0.443843846,
    -0.392468048,
    0.0977305378,
)
_ERFCX5 = (0.000457191339, 0.273824905, 0.340270507, 0.0445423748, 0.535507083, -0.194579743)
_ERFCX = {"erfcx7": _ERFCX7, "erfcx5": _ERFCX5}

# glibc has vector forms of these (libmvec); g++ uses them inside a vectorised loop under -ffast-math only.
_LIBM = """\
#include <features.h>
#if defined(__x86_64__) && defined(__FAST_MATH__) && defined(__GLIBC__)
#define MVEC __attribute__((simd("notinbranch"), const))
#else
#define MVEC
#endif
#if defined(__x86_64__) && defined(__FAST_MATH__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#define MVEC_LATE __attribute__((simd("notinbranch"), const))
#else
#define MVEC_LATE
#endif
extern "C" {
MVEC float expf(float) noexcept;
MVEC float logf(float) noexcept;
MVEC_LATE float tanhf(float) noexcept;
MVEC_LATE float erff(float) noexcept;
float sqrtf(float) noexcept;
}
template <class T, class F> INLINE T each(T v, F f) {
  float t[Ints<T>::lanes];
  store<T>(t, v);
  for (int k = 0; k < (int)Ints<T>::lanes; ++k) t[k] = f(t[k]);
  return load<T>(t);
}
"""


def literal(value: float) -> str:
    """A C++ float literal that reads back as the nearest float."""
    text = f"{value:.9g}"
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


def horner(coefficients: tuple[float, ...], variable: str) -> str:
    """Polynomial of `variable`, lowest coefficient first."""
    expression = f"all<T>({literal(coefficients[-1])})"
    for coefficient in reversed(coefficients[:-1]):
        expression = f"({expression} * {variable} + {literal(coefficient)})"
    return expression


def _lane_call(name: str, libm: str) -> str:
    return (
        f"template <class T> INLINE T {name}(T x) {{ return each(x, [](float v) {{ return {libm}(v); }}); }}\n"
        f"template <> inline __attribute__((always_inline)) float {name}<float>(float x) {{ return {libm}(x); }}\n"
    )


def exp_function(variant: str, name: str = "exp_") -> str:
    """`T name(T x)`: e to the x."""
    if variant == "libm":
        return _lane_call(name, "expf")
    flush = variant.endswith("_flush")
    poly = horner(_EXP_POLY[variant.removesuffix("_flush").removeprefix("poly")], "r")
    low = "-87.3f" if flush else "-104.0f"
    if flush:
        scale = """  T s = bits_as<T>((I)((n + 127) << 23));
  T y = p * s;
  return x < -87.3f ? all<T>(0.0f) : y;"""
        high = "88.0f"
    else:
        # Two factors: 2^n itself overflows at the top and is subnormal at the bottom of the range.
        scale = """  I h = n >> 1;
  return p * bits_as<T>((I)((h + 127) << 23)) * bits_as<T>((I)((n - h + 127) << 23));"""
        high = "89.0f"
    return f"""\
template <class T> INLINE T {name}(T x) {{
  typedef typename Ints<T>::type I;
  T c = x < {low} ? all<T>({low}) : x;
  c = c > {high} ? all<T>({high}) : c;
  T t = c * 1.44269504f;
  t = t + (t < 0.0f ? all<T>(-0.5f) : all<T>(0.5f));
  I n = to_int(t);
  T f = to_float(n);
  T r = (c - f * 0.693359375f) + f * 2.12194440e-4f;
  T p = {poly};
{scale}
}}
"""


def log_function(variant: str, name: str = "log_") -> str:
    """`T name(T x)`: natural logarithm of a positive normal x."""
    if variant == "libm":
        return _lane_call(name, "logf")
    return f"""\
template <class T> INLINE T {name}(T x) {{
  typedef typename Ints<T>::type I;
  I b = bits_as<I>(x) - 0x3f3504f3;
  I n = b >> 23;
  T f = bits_as<T>((I)((b & 0x7fffff) + 0x3f3504f3)) - 1.0f;
  T e = to_float(n);
  T s = f * f;
  T p = {horner(_LOG_POLY[variant.removeprefix("poly")], "f")};
  return (s * f * p - s * 0.5f + e * -2.12194440e-4f) + f + e * 0.693359375f;
}}
"""


def tanh_function(variant: str, name: str = "tanh_", exp: str = "exp_") -> str:
    """`T name(T x)`; uses the function `exp`, which must come before."""
    if variant == "libm":
        return _lane_call(name, "tanhf")
    if variant == "rational":
        return f"""\
template <class T> INLINE T {name}(T x) {{
  T u = x * x;
  T y = x * (u + 27.0f) / (u * 9.0f + 27.0f);
  y = y > 1.0f ? all<T>(1.0f) : y;
  return y < -1.0f ? all<T>(-1.0f) : y;
}}
"""
    outer = f"1.0f - 2.0f / ({exp}<T>(x * 2.0f) + 1.0f)"
    if variant == "exp":
        return f"template <class T> INLINE T {name}(T x) {{ return {outer}; }}\n"
    return f"""\
template <class T> INLINE T {name}(T x) {{
  T u = x * x;
  T near = x + x * u * {horner(_TANH_POLY, "u")};
  T far = {outer};
  return u < 0.4225f ? near : far;
}}
"""


def erf_function(variant: str, name: str = "erf_", exp: str = "exp_") -> str:
    """`T name(T x)`; uses the function `exp`, which must come before."""
    if variant == "libm":
        return _lane_call(name, "erff")
    poly = horner(_ERFCX.get(variant, _ERFCX9), "t")
    near = f"  T near = x * {horner(_ERF_POLY, 'u')};\n" if variant == "split" else ""
    result = "u < 1.0f ? near : far" if variant == "split" else "far"
    return f"""\
template <class T> INLINE T {name}(T x) {{
  T u = x * x;
  T a = x < 0.0f ? -x : x;
  T t = 1.0f / (a * 0.5f + 1.0f);
  T q = {exp}<T>(-u) * {poly};
  T far = x < 0.0f ? q - 1.0f : 1.0f - q;
{near}  return {result};
}}
"""


def normal_cdf_function(variant: str, name: str = "cdf_", exp: str = "exp_") -> str:
    """`T name(T x)`: Phi(x) = erfc(-x / sqrt 2) / 2 without the cancellation of 1 + erf for negative x."""
    if variant in ("libm", "split"):
        return (
            erf_function(variant, "erf_", exp)
            + f"template <class T> INLINE T {name}(T x) {{ return erf_<T>(x * 0.707106781f) * 0.5f + 0.5f; }}\n"
        )
    return f"""\
template <class T> INLINE T {name}(T x) {{
  T a = x < 0.0f ? -x : x;
  T t = 1.0f / (a * 0.353553391f + 1.0f);
  T q = {exp}<T>(x * x * -0.5f) * 0.5f * {horner(_ERFCX.get(variant, _ERFCX9), "t")};
  return x < 0.0f ? q : 1.0f - q;
}}
"""


def arithmetic(
    *, exp: str | None = None, log: str | None = None, tanh: str | None = None, erf: str | None = None
) -> str:
    """libm's declarations and the functions asked for: `exp_`, `log_`, `tanh_`, `erf_` (templates over T)."""
    parts = [_LIBM]
    if exp is not None:
        parts.append(exp_function(exp))
    if log is not None:
        parts.append(log_function(log))
    if tanh is not None:
        parts.append(tanh_function(tanh))
    if erf is not None:
        parts.append(erf_function(erf))
    return "".join(parts)
