// scan.h for a block of many threads.
#pragma once

namespace mybackend::device {

template <class Op>
MB_DEVICE void store_result(const Op& op, const Scan& s, char* out0, char* out1, typename Op::Acc acc) {
  store_one(out0, op.value(acc), s.out_dtype[0]);
  if constexpr (Op::positions) store_one(out1, acc.b, s.out_dtype[1]);
}

// Elements [begin, end) of one line whose first element is `in`. Without `write` only the total is found.
template <class Op, class Stored>
MB_DEVICE typename Op::Acc scan_row(Block block, const Op& op, const Scan& s, const char* in, char* out0, char* out1,
                                    int64_t begin, int64_t end, typename Op::Acc carry, bool write) {
  using Acc = typename Op::Acc;
  return block.scan<Acc>(
      end - begin, carry, [&](Acc a, Acc b) { return op.combine(a, b); },
      [&](int64_t i) {
        return op.term(read_one<typename Op::Input, Stored>(in + (begin + i) * s.in_stride), begin + i);
      },
      [&](int64_t i, Acc acc) {
        if (write) store_result(op, s, out0 + (begin + i) * s.out_stride[0], out1 + (begin + i) * s.out_stride[1], acc);
      });
}

// Elements [begin, end) of `width` neighbouring lines; carry[i] is where line i starts from and receives its total.
template <class Op, class Stored>
MB_DEVICE void scan_columns(Block block, const Op& op, const Scan& s, const char* in, char* out0, char* out1,
                            int64_t width, int64_t begin, int64_t end, typename Op::Acc* carry, bool write) {
  block.each(width, [&](int64_t i) {
    auto acc = carry[i];
    for (int64_t p = begin; p < end; p++) {
      acc = op.combine(acc,
                       op.term(read_one<typename Op::Input, Stored>(in + p * s.in_stride + i * s.kept_stride[0]), p));
      if (write)
        store_result(op, s, out0 + p * s.out_stride[0] + i * s.kept_out_stride[0][0],
                     out1 + p * s.out_stride[1] + i * s.kept_out_stride[1][0], acc);
    }
    carry[i] = acc;
  });
}

}  // namespace mybackend::device
