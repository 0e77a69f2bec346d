// Binary search: torch.bucketize and torch.searchsorted in compiled code.
#pragma once

#include "platform.h"

// Number of boundaries below `value` (right: not above it). `sorter`, if any, gives the order of the boundaries.
template <class I, class T, class B>
MB_FN I mb_bucketize(T value, const B* boundaries, mb_i64 count, mb_i64 start, mb_i64 stride, bool right,
                     const mb_i64* sorter = nullptr, mb_i64 sorter_start = 0, mb_i64 sorter_stride = 1) {
  mb_i64 low = 0, high = count;
  while (low < high) {
    const mb_i64 middle = low + (high - low) / 2;
    const mb_i64 at = sorter == nullptr ? middle : sorter[sorter_start + middle * sorter_stride];
    const T boundary = T(mb_load(boundaries[start + at * stride]));
    const bool above = right ? !(boundary > value) : !(boundary >= value);
    low = above ? middle + 1 : low;
    high = above ? high : middle;
  }
  return I(low);
}
