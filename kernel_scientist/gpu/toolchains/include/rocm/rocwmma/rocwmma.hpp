// Ours: the name under which submissions include it.
#pragma once
#include <rocwmma/fragments.h>
