// Numbers under the names of ROCm 6's header, which the installed headers lack. Ours.
#pragma once

#define HIP_INF_F __builtin_inff()
#define HIP_NAN_F __builtin_nanf("")
#define HIP_MIN_DENORM_F 0x1p-149f
#define HIP_MAX_NORMAL_F 0x1.fffffep+127f
#define HIP_NEG_ZERO_F -0.0f
#define HIP_ZERO_F 0.0f
#define HIP_ONE_F 1.0f
#define HIP_SQRT_HALF_F 0x1.6a09e6p-1f
#define HIP_SQRT_TWO_F 0x1.6a09e6p+0f
#define HIP_LOG2E_F 0x1.715476p+0f
#define HIP_L2E_F 0x1.715476p+0f
#define HIP_LN2_F 0x1.62e43p-1f
#define HIP_PI_F 0x1.921fb6p+1f
#define HIP_PIO2_F 0x1.921fb6p+0f
#define HIP_PIO4_F 0x1.921fb6p-1f
#define HIP_INF __builtin_inf()
#define HIP_NAN __builtin_nan("")
#define HIP_SQRT_HALF 0x1.6a09e667f3bcdp-1
#define HIP_SQRT_TWO 0x1.6a09e667f3bcdp+0
#define HIP_LOG2E 0x1.71547652b82fep+0
#define HIP_L2E 0x1.71547652b82fep+0
#define HIP_LN2 0x1.62e42fefa39efp-1
#define HIP_PI 0x1.921fb54442d18p+1
#define HIP_PIO2 0x1.921fb54442d18p+0
#define HIP_PIO4 0x1.921fb54442d18p-1
