// scatter_elements: to[index] = from and to[index] += from. Serves scatter, scatter_add, index_put, index_add,
// index_copy, index_fill and put; combine_indices makes one index array of several.
//
// How colliding elements are ordered: scatter_walk.h.
// Called by csrc/aten/index.cpp, csrc/aten/scatter_gather.cpp. Spec: test/ops/test_index.py.
#include "csrc/kernels/scatter_walk.h"

namespace mybackend::kernels {
namespace {

using scatter::run;

void assign(Stream stream, const IndexOperands& o) {
  switch (size_of(o.dtype)) {
    case 1:
      return run<uint8_t, scatter::Assign>(stream, o);
    case 2:
      return run<uint16_t, scatter::Assign>(stream, o);
    case 4:
      return run<uint32_t, scatter::Assign>(stream, o);
    case 8:
      return run<uint64_t, scatter::Assign>(stream, o);
    default:
      return run<Word16, scatter::Assign>(stream, o);
  }
}

// An index array's element becomes the byte offset it names. What is out of range names `kNowhere`.
struct CombineIndices {
  IndexOperands o;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    device::each_row(
        block, span.rows, span.columns,
        [&](int64_t row) {
          auto place = Place<kMaxIndices>::origin(o);
          place.follow(o, 1, o.ndim, span.first_row + row);
          place.step(o, 0, span.first_column);
          return place;
        },
        [&](const Place<kMaxIndices>& place, int64_t c) {
          int64_t offset;
          const bool inside = place.template resolve<int64_t>(o, 0, c, offset);
          *reinterpret_cast<int64_t*>(place.to + c * o.to_strides[0]) = inside ? offset : kNowhere;
        });
  }
};

}  // namespace

MB_DEFINE_KERNEL(scatter_elements, (Stream stream, const IndexOperands& o, Update update)) {
  using Everything = Join<Floats, Halves, Integers, Booleans, Complexes>;
  switch (update) {
    case Update::Assign:
      return assign(stream, o);
    case Update::Add:
      return visit<Everything>(o.dtype, "scatter_add_",
                               [&](auto type) { run<typename decltype(type)::type, scatter::Add>(stream, o); });
    default:
      return scatter_reduce_elements(stream, o, update);
  }
}

MB_DEFINE_KERNEL(combine_indices, (Stream stream, const IndexOperands& o)) {
  const RowSplit split = RowSplit::of(o.numel / o.sizes[0], o.sizes[0], 2048);
  device::launch(stream, {split.blocks(), 128, split.elements_per_block()}, CombineIndices{o, split});
}

}  // namespace mybackend::kernels
