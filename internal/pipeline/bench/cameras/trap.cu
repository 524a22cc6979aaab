// Trap: a kernel that ends in a fault, so that its context fails for good. It is
// how a bench takes a card away.
#include "../../../../preprocess/kernels/shim.h"

#ifndef HOST

KERNEL void trap() { __builtin_trap(); }

#endif
