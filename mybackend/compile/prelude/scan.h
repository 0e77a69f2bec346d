// Scans: every element becomes the combination of those before it and itself.
//
// A scan is a struct S of its values with `static S of(S before, S after)`, which is associative, and `leaves`, the number
// of its values. A row is scanned in rounds of lanes (MB_ROUNDS): mb_scan(lanes, count, carry, started) scans the `count`
// lanes of a round after what the rounds before it left in `carry`. On the GPU the lanes are the block's threads, and all
// of them must call it.
#pragma once

#include "loops.h"

#if MB_GPU
template <class S>
MB_FN void mb_scan(S (&lanes)[MB_LANES], int count, S& carry, bool& started) {
  __shared__ __align__(16) unsigned char bytes[1024 * sizeof(S)];
  S* held = reinterpret_cast<S*>(bytes);
  const int at = threadIdx.x;
  S mine = lanes[0];
  held[at] = mine;
  __syncthreads();
  for (int step = 1; step < count; step *= 2) {
    if (at >= step && at < count) mine = S::of(held[at - step], mine);
    __syncthreads();
    held[at] = mine;
    __syncthreads();
  }
  const S all = held[count - 1];
  lanes[0] = started ? S::of(carry, mine) : mine;
  carry = started ? S::of(carry, all) : all;
  started = true;
  __syncthreads();
}
#else
// Lanes of one value are scanned by themselves, then combined with the carry as a vector: the error of a long sum grows
// with the number of rounds, not of elements.
template <class S, int kLanes>
MB_FN void mb_scan(S (&lanes)[kLanes], int count, S& carry, bool& started) {
  const bool apart = S::leaves == 1;
  S all = started && !apart ? S::of(carry, lanes[0]) : lanes[0];
  lanes[0] = all;
  for (int lane = 1; lane < count; lane++) {
    all = S::of(all, lanes[lane]);
    lanes[lane] = all;
  }
  if (started && apart) {
    MB_SIMD()
    for (int lane = 0; lane < kLanes; lane++) lanes[lane] = S::of(carry, lanes[lane]);
    all = lanes[count - 1];
  }
  carry = all;
  started = true;
}
#endif
