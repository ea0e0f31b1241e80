// Rows of vector comparisons: one bit per lane into a pair of scalar registers.
#include "lanes.h"

namespace machine {

template <class T> static void ordered(const std::string& type) {
    C<T, T>("f_" + type, [](T, T) { return false; });
    C<T, T>("lt_" + type, [](T a, T b) { return a < b; });
    C<T, T>("eq_" + type, [](T a, T b) { return a == b; });
    C<T, T>("le_" + type, [](T a, T b) { return a <= b; });
    C<T, T>("gt_" + type, [](T a, T b) { return a > b; });
    C<T, T>("ge_" + type, [](T a, T b) { return a >= b; });
}
template <class T> static void integers(const std::string& type) {
    ordered<T>(type);
    C<T, T>("ne_" + type, [](T a, T b) { return a != b; });
    C<T, T>("t_" + type, [](T, T) { return true; });
}
template <class T> static void floats(const std::string& type) {
    ordered<T>(type);
    C<T, T>("lg_" + type, [](T a, T b) { return a < b || a > b; });
    C<T, T>("o_" + type, [](T a, T b) { return a == a && b == b; });
    C<T, T>("u_" + type, [](T a, T b) { return a != a || b != b; });
    C<T, T>("nge_" + type, [](T a, T b) { return !(a >= b); });
    C<T, T>("nlg_" + type, [](T a, T b) { return !(a < b || a > b); });
    C<T, T>("ngt_" + type, [](T a, T b) { return !(a > b); });
    C<T, T>("nle_" + type, [](T a, T b) { return !(a <= b); });
    C<T, T>("neq_" + type, [](T a, T b) { return !(a == b); });
    C<T, T>("nlt_" + type, [](T a, T b) { return !(a < b); });
    C<T, T>("tru_" + type, [](T, T) { return true; });
}

// The bit of a number's class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
template <class B, int MANTISSA> static u32 class_of(B x) {
    constexpr int size = 8 * sizeof(B);
    constexpr B fraction = (B(1) << MANTISSA) - 1, most = (B(1) << (size - 1 - MANTISSA)) - 1;
    const bool negative = x >> (size - 1) & 1;
    const B exponent = x >> MANTISSA & most, rest = x & fraction;
    if (exponent == most && rest) return rest >> (MANTISSA - 1) & 1 ? 2 : 1;
    const int kind = exponent == most ? 0 : exponent ? 1 : rest ? 2 : 3;
    return negative ? 4u << kind : 512u >> kind;
}

static const bool there = [] {
    integers<i16>("i16"), integers<u16>("u16"), integers<i32>("i32"), integers<u32>("u32");
    integers<i64>("i64"), integers<u64>("u64");
    floats<f16>("f16"), floats<f32>("f32"), floats<f64>("f64");
    C<f32, u32>("class_f32", [](f32 a, u32 b) { return (class_of<u32, 23>(bits(a)) & b) != 0; });
    C<f16, u32>("class_f16", [](f16 a, u32 b) { return (class_of<u16, 10>(bits(a)) & b) != 0; });
    C<f64, u32>("class_f64", [](f64 a, u32 b) { return (class_of<u64, 52>(std::bit_cast<u64>(a)) & b) != 0; });
    return true;
}();

}  // namespace machine
