// Declarations that torch's headers want of rocThrust. Ours; nothing of it is ever called.
#pragma once

namespace thrust {
template <class T>
struct complex {
  T re, im;
  __host__ __device__ constexpr complex(T r = T(), T i = T()) : re(r), im(i) {}
  template <class U>
  __host__ __device__ constexpr complex(const complex<U>& o) : re(T(o.re)), im(T(o.im)) {}
  __host__ __device__ constexpr T real() const { return re; }
  __host__ __device__ constexpr T imag() const { return im; }
};
#define KS_OF_ONE(name) template <class T> __host__ __device__ complex<T> name(const complex<T>&);
KS_OF_ONE(exp) KS_OF_ONE(log) KS_OF_ONE(log10) KS_OF_ONE(sqrt) KS_OF_ONE(conj) KS_OF_ONE(proj)
KS_OF_ONE(sin) KS_OF_ONE(cos) KS_OF_ONE(tan) KS_OF_ONE(asin) KS_OF_ONE(acos) KS_OF_ONE(atan)
KS_OF_ONE(sinh) KS_OF_ONE(cosh) KS_OF_ONE(tanh) KS_OF_ONE(asinh) KS_OF_ONE(acosh) KS_OF_ONE(atanh)
#undef KS_OF_ONE
template <class T> __host__ __device__ T abs(const complex<T>&);
template <class T> __host__ __device__ T arg(const complex<T>&);
template <class T> __host__ __device__ T norm(const complex<T>&);
template <class T> __host__ __device__ complex<T> polar(const T&, const T& = T());
template <class T> __host__ __device__ complex<T> pow(const complex<T>&, const complex<T>&);
template <class T> __host__ __device__ complex<T> pow(const complex<T>&, const T&);
template <class T> __host__ __device__ complex<T> pow(const T&, const complex<T>&);
}  // namespace thrust
