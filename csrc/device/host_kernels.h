// The host driver's kernel library: chosen by what the CPU can run, opened on first use; and the launch it calls.
//
// libmb_kernels_host_v4.so needs x86-64-v4 (AVX-512 F, BW, CD, DQ, VL), _v3.so x86-64-v3 (AVX2, FMA, BMI, F16C ...); on
// other machines there is one, _native.so. MYBACKEND_HOST_ISA=v3|v4 forces one.
#pragma once

#include "csrc/device/host_runtime.h"

namespace mybackend::device::host {

// 4 or 3 for the x86-64 level the kernels are built for, 0 where there are no levels (or none that can run).
int isa_level();

// nullptr when the library has no such kernel. Throws std::runtime_error when no library can be used; says why.
void* find_kernel(const char* name);

// Runs items [begin, end) of a launch whose kernel object is at `kernel`.
using Body = void (*)(const void* kernel, int64_t begin, int64_t end);

// As HostRuntime::launch, in pieces that begin at multiples of `unit`: where neighbouring items share lines of memory
// that they write, two threads would take each line from one another.
void launch_in_units(Stream stream, const void* kernel, size_t bytes, Body body, int64_t blocks, int64_t grain,
                     int64_t unit);

// What a kernel library, or kernels linked into a test, are initialised with.
const HostRuntime& kernel_runtime();

}  // namespace mybackend::device::host
