// Ours: the name under which many submissions include it.
#pragma once
#include <hip/hip_fp8.h>
