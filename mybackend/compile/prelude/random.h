// Random numbers of torch.rand and its like in compiled code: Philox 4x32-10 (Salmon et al., 2011), keyed by the graph's
// seed and counted by the element's number.
#pragma once

#include "maths.h"

MB_FN void mb_philox(mb_i64 seed, mb_i64 offset, mb_u32& first, mb_u32& second) {
  mb_u32 k0 = mb_u32(mb_u64(seed)), k1 = mb_u32(mb_u64(seed) >> 32);
  mb_u32 c0 = mb_u32(mb_u64(offset)), c1 = mb_u32(mb_u64(offset) >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; round++) {
    const mb_u64 a = mb_u64(0xD2511F53u) * c0, b = mb_u64(0xCD9E8D57u) * c2;
    const mb_u32 n0 = mb_u32(b >> 32) ^ c1 ^ k0, n2 = mb_u32(a >> 32) ^ c3 ^ k1;
    c1 = mb_u32(b);
    c3 = mb_u32(a);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  first = c0;
  second = c1;
}

// [0, 1) in steps of 2^-24.
MB_FN float mb_uniform(mb_u32 x) {
  return float(int(x >> 8)) * 5.9604644775390625e-8f;
}
MB_FN float mb_rand(mb_i64 seed, mb_i64 offset) {
  mb_u32 a, b;
  mb_philox(seed, offset, a, b);
  return mb_uniform(a);
}
// Box and Muller.
MB_FN float mb_randn(mb_i64 seed, mb_i64 offset) {
  mb_u32 a, b;
  mb_philox(seed, offset, a, b);
  return mb_sqrt(-2.0f * mb_log(1.0f - mb_uniform(a))) * mb_cos(6.283185307179586f * mb_uniform(b));
}
// [low, high)
MB_FN mb_i64 mb_randint64(mb_i64 seed, mb_i64 offset, mb_i64 low, mb_i64 high) {
  mb_u32 a, b;
  mb_philox(seed, offset, a, b);
  const mb_u64 size = mb_u64(high) - mb_u64(low);
  const mb_u64 value = size > 0xffffffffull ? mb_u64(b) << 32 | a : mb_u64(a);
  return mb_i64(mb_u64(low) + value % size);
}
