// Entry point of csrc/kernels/select.cu: the element that stands at a given place when a line is sorted.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/reduction.h"

namespace mybackend::kernels {
using device::Stream;

enum class Place : int8_t {
  Given,      // the k-th smallest, from 0; NaN is the largest
  Median,     // the lower median, or NaN if the line has one
  NanMedian,  // the lower median of what is not NaN
};

// Values in output 0 and a position of each in output 1 (null leaves it out). `r` has one reduced dimension, or any
// number where output 1 is left out.
MB_DECLARE_KERNEL(select_place, void(Stream stream, const Reduction& r, Place place, int64_t k));

}  // namespace mybackend::kernels
