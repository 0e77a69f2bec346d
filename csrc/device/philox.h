// Philox-4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC
// 2011).
//
// Ten rounds turn a 128-bit counter and a 64-bit key into four random words; nothing is kept between draws, so a number
// depends on seed, offset and position alone: the same on every driver and for any number of threads.
// Constants are table 2 and section 4.3 of the paper.
#pragma once

#include <cstdint>

#include "csrc/device/portable.h"

namespace mybackend::device {

struct Words4 {
  uint32_t word[4];
};

// The four words at `offset` (counted in words, a multiple of 4) of subsequence `subsequence`.
MB_DEVICE Words4 philox(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  const uint64_t block = offset / 4;
  uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32);
  uint32_t c2 = uint32_t(subsequence), c3 = uint32_t(subsequence >> 32);
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0;
    const uint64_t p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform on [0, 1): the top `bits` bits of the word.
MB_DEVICE float uniform_float(uint32_t word, int bits = 24) {
  return float(word >> (32 - bits)) * (1.0f / float(1u << bits));
}
MB_DEVICE double uniform_double(uint32_t high, uint32_t low) {
  const uint64_t word = (uint64_t(high) << 32 | low) >> 11;
  return double(int64_t(word)) * 0x1p-53;
}

// Uniform on the open interval (0, 1): midpoints of 2^23 (2^52) equal parts, all exact.
MB_DEVICE float uniform_open(uint32_t word) {
  return (float(word >> 9) + 0.5f) * 0x1p-23f;
}
MB_DEVICE double uniform_open(uint32_t high, uint32_t low) {
  const uint64_t word = (uint64_t(high) << 32 | low) >> 12;
  return (double(int64_t(word)) + 0.5) * 0x1p-52;
}

}  // namespace mybackend::device
