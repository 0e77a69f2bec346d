// topk_rows: the first elements, by size, of contiguous rows.
//
// Drops what a bound shows to be beyond the k-th element, finds the digit (radix.h) in which that one falls, from the
// top digit down, each time keeping only what is not beyond it; then sorts what is left. A block handles several rows,
// one after the other. Called by csrc/aten/sort.cpp. Spec: test/ops/test_sort.py.
#include "csrc/kernels/radix.h"

namespace mybackend::kernels {
namespace {

using namespace radix;

constexpr int64_t kMostGroups = 1024;
constexpr int64_t kFewCandidates = 192;

// How many groups topk deals a row out to in order to bound the k-th element; 0 where that would not pay.
int64_t groups_for(int64_t columns, int64_t keep) {
  int64_t groups = 64;
  while (groups < 4 * keep && groups < kMostGroups) groups *= 2;
  return groups >= 2 * keep && columns >= 4 * groups ? groups : 0;
}

template <class T>
struct Topk {
  SortRows r;
  int64_t blocks;
  int64_t groups;  // of `bound`; 0: no bound is sought

  MB_DEVICE void operator()(Block block) const {
    for (int64_t row = block.index; row < r.rows; row += blocks) one_row(block, row);
  }

  MB_DEVICE void one_row(Block block, int64_t row) const {
    using K = Key<T>;
    MB_SHARED(block, uint32_t, counts, kCounts);
    const K flip = r.descending ? K(~K(0)) : K(0);
    const T* in = reinterpret_cast<const T*>(r.in) + row * r.columns;
    T* values = reinterpret_cast<T*>(r.values) + row * r.keep;
    int64_t* indices = r.indices + row * r.keep;
    const int width = digit_width(block);

    // The top digit of the k-th element is at most `digit`. What is not beyond becomes (key, position); later digits
    // look at these only.
    int shift = int(sizeof(K) * 8);
    uint64_t prefix = 0;
    auto key = [&](int64_t i) { return key_of(in[i], flip); };
    auto pairs = pairs_in<K>(r.scratch + block.index * sort_scratch_bytes(1, r.columns), r.columns);
    auto take = [&](int64_t i, int64_t place) {
      pairs.key[place] = key(i);
      pairs.position[place] = uint32_t(i);
    };
    int64_t n = 0;
    if (groups > 0) {
      const uint64_t last = bound(block, in, flip);
      if constexpr (device::kThreadedBlocks) {
        n = collect(block, r.columns, 0, last, key, take);
      } else {
        // Few keys are kept: runs of keys that are all beyond are passed over, which vectorises.
        for (int64_t begin = 0; begin < r.columns; begin += kRun) {
          if (r.columns - begin >= kRun && none_until(block, in + begin, flip, K(last))) continue;
          const int64_t count = r.columns - begin < kRun ? r.columns - begin : kRun;
          n += collect(
              block, count, 0, last, [&](int64_t i) { return key(begin + i); },
              [&](int64_t i, int64_t place) { take(begin + i, n + place); });
        }
      }
    } else {
      shift -= width;
      prefix = find_cut(block, counts, r.columns, r.keep, shift, width, key).digit;
      n = collect(block, r.columns, shift, prefix, key, take);
    }
    if (r.sorted && n <= kFewCandidates) {
      rank_sort(block, pairs, n);
      return fetch_row(block, pairs, r.keep, in, values, indices);
    }
    while (shift > 0 && n > r.keep) {
      const int next = shift > width ? shift - width : 0;
      const int bits = shift - next;
      // Keys before the prefix are kept for certain; the digit at which the cut falls is sought among those equal to
      // it.
      const uint64_t above = prefix;
      const int64_t certain =
          block.template sum<int64_t>(n, [&](int64_t i) { return int64_t(leading(pairs.key[i], shift) < above); });
      const Cut cut = find_cut(
          block, counts, n, r.keep - certain, next, bits, [&](int64_t i) { return pairs.key[i]; }, above, shift);
      prefix = (prefix << bits) | cut.digit;
      shift = next;
      n = collect(
          block, n, shift, prefix, [&](int64_t i) { return pairs.key[i]; },
          [&](int64_t i, int64_t place) {
            pairs.other_key[place] = pairs.key[i];
            pairs.other_position[place] = pairs.position[i];
          });
      pairs.swap();
    }
    // Equals beyond the k-th: the first ones in order are kept.
    const int64_t before =
        block.template sum<int64_t>(n, [&](int64_t i) { return int64_t(leading(pairs.key[i], shift) < prefix); });
    if (n > r.keep) {
      const int64_t equals = r.keep - before;
      block.template scan<uint64_t>(
          n, uint64_t(0), Sum{},
          [&](int64_t i) { return leading(pairs.key[i], shift) < prefix ? uint64_t(1) << 32 : uint64_t(1); },
          [&](int64_t i, uint64_t through) {
            const int64_t equal = int64_t(through & 0xffffffff);
            const bool smaller = leading(pairs.key[i], shift) < prefix;
            if (!smaller && equal > equals) return;
            const int64_t place = int64_t(through >> 32) + (equal < equals ? equal : equals) - 1;
            pairs.other_key[place] = pairs.key[i];
            pairs.other_position[place] = pairs.position[i];
          });
      block.sync();
      pairs.swap();
    }
    if (r.sorted && r.keep > kShortRow) radix_sort(block, pairs, r.keep, counts);
    if (r.sorted && r.keep <= kShortRow) rank_sort(block, pairs, r.keep);
    fetch_row(block, pairs, r.keep, in, values, indices);
  }

  // What is above the lowest `shift` bits of a key.
  MB_DEVICE static uint64_t leading(uint64_t key, int shift) { return shift < 64 ? key >> shift : 0; }

  static constexpr int64_t kRun = 64 / sizeof(T);

  // Whether none of the next kRun keys is at most `last`.
  MB_DEVICE static bool none_until(Block block, const T* in, Key<T> flip, Key<T> last) {
    using K = Key<T>;
    return block.template sum<K>(kRun, [&](int64_t i) { return key_of(in[i], flip) <= last ? K(1) : K(0); }) == 0;
  }

  // At least `keep` keys of the row are at most this. The row is dealt out to groups; of their least keys the one that
  // has `keep` others at or before it is such a bound, and few keys are below it when groups outnumber `keep`.
  MB_DEVICE uint64_t bound(Block block, const T* in, Key<T> flip) const {
    using K = Key<T>;
    using Count = std::conditional_t<sizeof(K) == 1, uint16_t, K>;
    MB_SHARED(block, K, least, kMostGroups);
    const int64_t whole = r.columns / groups;
    block.each(groups, [&](int64_t g) { least[g] = key_of(in[g], flip); });
    for (int64_t line = 1; line < whole; line++) {
      const T* x = in + line * groups;
      block.each(groups, [&](int64_t g) {
        const K key = key_of(x[g], flip);
        least[g] = key < least[g] ? key : least[g];
      });
    }
    block.sync();
    // Bit by bit; the lowest ones are left open once that lets few more in.
    K found = 0;
    int bit = int(sizeof(K)) * 8;
    for (int64_t through = groups; bit > 0 && through > r.keep + r.keep / 16;) {
      bit--;
      const K middle = K(found | K(K(1) << bit));
      const int64_t before = int64_t(
          block.template sum<Count>(groups, [&](int64_t g) { return least[g] < middle ? Count(1) : Count(0); }));
      if (before < r.keep)
        found = middle;
      else
        through = before;
    }
    block.sync();
    return uint64_t(found) | ((bit < 64 ? uint64_t(1) << bit : 0) - 1);
  }

  // The digit, `bits` wide at `shift`, in which the element number `wanted` falls.
  struct Cut {
    uint64_t digit;
  };

  // Counts only keys that equal `above` from bit `from` up (all of them when there are no such bits).
  template <class F>
  MB_DEVICE static Cut find_cut(Block block, uint32_t* counts, int64_t n, int64_t wanted, int shift, int bits, F key,
                                uint64_t above = 0, int from = 64) {
    const int digits = 1 << bits;
    const uint64_t mask = uint64_t(digits) - 1;
    const int64_t run = device::ceil_div(n, block.threads);
    block.each(int64_t(digits) * block.threads, [&](int64_t c) { counts[c] = 0; });
    block.sync();
    block.each(block.threads, [&](int64_t t) {
      const int64_t end = (t + 1) * run < n ? (t + 1) * run : n;
      for (int64_t i = t * run; i < end; i++) {
        const uint64_t k = key(i);
        if (from >= int(sizeof(k)) * 8 || k >> from == above)
          counts[((k >> shift) & mask) * uint64_t(block.threads) + t]++;
      }
    });
    block.sync();
    // Every thread finds the digit by itself.
    int64_t before = 0;
    int digit = 0;
    for (; digit < digits - 1; digit++) {
      int64_t here = 0;
      for (int t = 0; t < block.threads; t++) here += counts[digit * block.threads + t];
      if (before + here >= wanted) break;
      before += here;
    }
    block.sync();
    return {uint64_t(digit)};
  }

  // Calls keep(i, place) for each key that is at most `last` from bit `shift` up, in order; returns how many there are.
  template <class F, class G>
  MB_DEVICE static int64_t collect(Block block, int64_t n, int shift, uint64_t last, F key, G keep) {
    const int64_t count = block.template scan<int64_t>(
        n, int64_t(0), Sum{}, [&](int64_t i) { return int64_t(uint64_t(key(i)) >> shift <= last); },
        [&](int64_t i, int64_t through) {
          if (uint64_t(key(i)) >> shift <= last) keep(i, through - 1);
        });
    block.sync();
    return count;
  }
};

}  // namespace

MB_DEFINE_KERNEL(topk_rows, (Stream stream, const SortRows& r)) {
  visit_sortable(r.dtype, "topk", [&](auto type) {
    using T = typename decltype(type)::type;
    if (r.columns <= kShortRow) return sort_short_rows<T>(stream, r);
    const int64_t blocks = sort_blocks(r.rows, r.columns);
    device::launch(stream, {blocks, kThreads, device::ceil_div(r.rows, blocks) * r.columns * 4},
                   Topk<T>{r, blocks, groups_for(r.columns, r.keep)});
  });
}

}  // namespace mybackend::kernels
