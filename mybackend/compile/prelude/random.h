// Random numbers of torch.rand and its like in compiled code: Philox 4x32-10 (Salmon et al., 2011), keyed by the
// graph's seed and counted by the element's number.
#pragma once

#include "maths.h"

struct mb_philox_state {
  mb_u32 c0, c1, c2, c3, k0, k1;
};
MB_FN mb_philox_state mb_philox_round(const mb_philox_state& s) {
  const mb_u64 a = mb_u64(0xD2511F53u) * s.c0, b = mb_u64(0xCD9E8D57u) * s.c2;
  return {mb_u32(b >> 32) ^ s.c1 ^ s.k0,
          mb_u32(b),
          mb_u32(a >> 32) ^ s.c3 ^ s.k1,
          mb_u32(a),
          s.k0 + 0x9E3779B9u,
          s.k1 + 0xBB67AE85u};
}

// The rounds are written out: a loop within the loop over elements would keep that from being vectorised.
MB_FN void mb_philox(mb_i64 seed, mb_i64 offset, mb_u32& first, mb_u32& second) {
  mb_philox_state s = {mb_u32(mb_u64(offset)), mb_u32(mb_u64(offset) >> 32), 0, 0,
                       mb_u32(mb_u64(seed)),   mb_u32(mb_u64(seed) >> 32)};
  s = mb_philox_round(mb_philox_round(mb_philox_round(mb_philox_round(mb_philox_round(s)))));
  s = mb_philox_round(mb_philox_round(mb_philox_round(mb_philox_round(mb_philox_round(s)))));
  first = s.c0;
  second = s.c1;
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
