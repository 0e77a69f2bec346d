// Interpolation: nearest, nearest-exact, linear, cubic, and the antialiased kinds, in one to three dimensions.
//
// Every kind is separable: along an axis each output is a short weighted sum of neighbouring inputs. Here the weights
// of each axis are worked out on the host (interpolation.h). The last two axes are applied together,
// others one after the other, with what is between them in the compute type. The backward applies the transposed
// weights. Nearest neighbours, forward, are copies.
#include <ATen/native/UpSample.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "csrc/aten/factories.h"
#include "csrc/aten/interpolation.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/resample.h"
#include "csrc/runtime/stream.h"
#include "generated/resample.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using interpolation::Axis;
using interpolation::axis_of;
using interpolation::Kind;
using interpolation::Scale;
// The tables of a launch, in one piece of device memory.
template <class C>
class Tables {
 public:
  // Space for an axis; `taps` fills it.
  kernels::Taps taps(const Axis& axis) {
    kernels::Taps taps{.in_size = axis.in, .out_size = axis.out};
    for (const auto& row : axis.weight) taps.width = std::max<int64_t>(taps.width, row.size());
    // The longest run of outputs with the most taps.
    for (int64_t o = 0; o < axis.out;) {
      const int64_t begin = o;
      while (o < axis.out && static_cast<int64_t>(axis.weight[o].size()) == taps.width) o++;
      if (o - begin > taps.full_end - taps.full_begin) taps.full_begin = begin, taps.full_end = o;
      o += o == begin;
    }
    const size_t n = static_cast<size_t>(axis.out);
    auto* start = reserve<int32_t>(n);
    std::copy(axis.start.begin(), axis.start.end(), start);
    taps.start = at(start);
    auto* count = reserve<int32_t>(n);
    for (size_t o = 0; o < n; o++) count[o] = static_cast<int32_t>(axis.weight[o].size());
    taps.count = at(count);
    auto* weight = reserve<C>(n * static_cast<size_t>(taps.width));
    for (size_t o = 0; o < n; o++)
      for (size_t t = 0; t < axis.weight[o].size(); t++) weight[t * n + o] = static_cast<C>(axis.weight[o][t]);
    taps.weight = reinterpret_cast<const char*>(at(weight));
    return taps;
  }

  template <class T>
  T* reserve(size_t count) {
    const size_t begin = (size_ + alignof(C) - 1) / alignof(C) * alignof(C);
    size_ = begin + count * sizeof(T);
    TORCH_INTERNAL_ASSERT(size_ <= static_cast<size_t>(host_.numel()));
    return reinterpret_cast<T*>(static_cast<char*>(host_.mutable_data_ptr()) + begin);
  }

  // Where what lies at `p` in the host's copy will lie on the device.
  template <class T>
  const T* at(const T* p) const {
    return reinterpret_cast<const T*>(
        static_cast<const char*>(device_.const_data_ptr()) +
        (reinterpret_cast<const char*>(p) - static_cast<const char*>(host_.const_data_ptr())));
  }

  static int64_t bytes(const Axis& axis) {
    size_t width = 0;
    for (const auto& row : axis.weight) width = std::max(width, row.size());
    return axis.out * (8 + static_cast<int64_t>(width * sizeof(C))) + 32;
  }

  explicit Tables(int64_t bytes)
      : host_(at::empty({bytes}, at::kByte)), device_(empty_on_current_device({bytes}, at::kByte)) {}

  void upload() { device_.copy_(host_); }

 private:
  Tensor host_, device_;
  size_t size_ = 0;
};

template <class C>
void apply(const Axis& axis, const Tensor& in, const Tensor& out, int64_t outer, int64_t inner) {
  Tables<C> tables(Tables<C>::bytes(axis));
  const kernels::Taps taps = tables.taps(axis);
  tables.upload();
  kernels::resample_axis(runtime::current_stream(in.device().index()),
                         {.in = static_cast<const char*>(in.const_data_ptr()),
                          .out = static_cast<char*>(out.mutable_data_ptr()),
                          .in_dtype = to_dtype(in.scalar_type()),
                          .out_dtype = to_dtype(out.scalar_type()),
                          .outer = outer,
                          .inner = inner,
                          .axis = taps});
}

// How a plane is cut into blocks; no rows where the taps of a single row do not fit.
struct Cut {
  int64_t rows, columns;
};

Cut cut_plane(const Axis& y, const Axis& x) {
  constexpr int64_t kColumns = 256, kElements = 8192;
  const int64_t pieces = (x.out + kColumns - 1) / kColumns, columns = (x.out + pieces - 1) / pieces;
  auto fits = [&](int64_t rows) {
    for (int64_t o = 0; o < y.out; o += rows) {
      const auto [first, last] = y.inputs(o, o + rows);
      if ((last - first) * columns > kernels::kPlaneTile) return false;
    }
    return true;
  };
  int64_t rows = std::min(y.out, kElements / columns);
  while (rows > 0 && !fits(rows)) rows -= (rows + 7) / 8;
  return {rows, columns};
}

template <class C>
void apply(const Axis& y, const Axis& x, Cut cut, const Tensor& in, const Tensor& out, int64_t planes) {
  const int64_t bands = (y.out + cut.rows - 1) / cut.rows;
  Tables<C> tables(Tables<C>::bytes(y) + Tables<C>::bytes(x) + bands * 8 + 16);
  const kernels::Taps y_taps = tables.taps(y), x_taps = tables.taps(x);
  auto* first = tables.template reserve<int32_t>(bands);
  auto* last = tables.template reserve<int32_t>(bands);
  for (int64_t b = 0; b < bands; b++) std::tie(first[b], last[b]) = y.inputs(b * cut.rows, (b + 1) * cut.rows);
  tables.upload();
  kernels::resample_plane(runtime::current_stream(in.device().index()),
                          {.in = static_cast<const char*>(in.const_data_ptr()),
                           .out = static_cast<char*>(out.mutable_data_ptr()),
                           .in_dtype = to_dtype(in.scalar_type()),
                           .out_dtype = to_dtype(out.scalar_type()),
                           .planes = planes,
                           .band = cut.rows,
                           .columns = cut.columns,
                           .first = tables.at(first),
                           .last = tables.at(last),
                           .y = y_taps,
                           .x = x_taps});
}

template <class C>
void resample(const Tensor& from, const Tensor& to, Kind kind, at::IntArrayRef in_sizes, at::IntArrayRef out_sizes,
              bool align_corners, at::ArrayRef<Scale> scales, bool backward) {
  const int64_t dims = static_cast<int64_t>(scales.size());
  Tensor held = from.contiguous();
  std::vector<std::pair<int64_t, Axis>> axes;
  for (int64_t k = 0; k < dims; k++) {
    Axis axis = axis_of<C>(kind, in_sizes[in_sizes.size() - dims + k], out_sizes[k], align_corners, scales[k]);
    if (!axis.identity()) axes.emplace_back(from.dim() - dims + k, backward ? axis.transposed() : std::move(axis));
  }
  if (axes.empty()) {
    to.copy_(held);
    return;
  }
  const auto between = c10::isReducedFloatingType(from.scalar_type()) ? at::kFloat : from.scalar_type();
  c10::DimVector sizes(from.sizes());
  for (size_t a = 0; a < axes.size();) {
    const auto& [dim, axis] = axes[a];
    Cut cut{};
    if (a + 1 < axes.size() && axes[a + 1].first == from.dim() - 1 && dim == from.dim() - 2)
      cut = cut_plane(axis, axes[a + 1].second);
    const size_t next = a + (cut.rows > 0 ? 2 : 1);
    const bool last = next == axes.size();
    for (size_t k = a; k < next; k++) sizes[axes[k].first] = axes[k].second.out;
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < from.dim(); d++) (d < dim ? outer : inner) *= d == dim ? 1 : sizes[d];
    const Tensor out = last && to.is_contiguous() && !to.is_alias_of(held)
                           ? to
                           : empty_on_current_device(sizes, last ? from.scalar_type() : between);
    if (cut.rows > 0)
      apply<C>(axis, axes[a + 1].second, cut, held, out, outer);
    else
      apply<C>(axis, held, out, outer, inner);
    held = out;
    a = next;
  }
  if (!held.is_same(to)) to.copy_(held);
}

// out[..., o] = in[..., index[o]] along each of the last axes.
void copy_nearest(const Tensor& from, const Tensor& to, Kind kind, at::IntArrayRef out_sizes,
                  at::ArrayRef<Scale> scales) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(from.scalar_type()) || from.scalar_type() == at::kByte,
                              "\"upsample_nearest\" not implemented for '", at::toString(from.scalar_type()), "'");
  const int64_t dims = static_cast<int64_t>(scales.size());
  const auto nearest = [&](int64_t k, int64_t o) {
    const int64_t in = from.size(from.dim() - dims + k);
    const int64_t i = kind == Kind::Nearest ? at::native::nearest_idx(o, in, out_sizes[k], scales[k])
                                            : at::native::nearest_exact_idx(o, in, out_sizes[k], scales[k]);
    return std::clamp<int64_t>(i, 0, in - 1);
  };
  const Tensor held = from.contiguous();
  const Tensor out = to.is_contiguous() ? to : at::empty(to.sizes(), to.options());
  kernels::ResampleCopy copy{.in = static_cast<const char*>(held.const_data_ptr()),
                             .out = static_cast<char*>(out.mutable_data_ptr()),
                             .size = from.element_size(),
                             .planes = from.size(0) * from.size(1),
                             .in_rows = 1,
                             .in_columns = from.size(-1),
                             .out_rows = 1,
                             .out_columns = out_sizes[dims - 1],
                             .repeat = 1};
  for (int64_t k = 0; k < dims - 1; k++) {
    copy.in_rows *= from.size(from.dim() - dims + k);
    copy.out_rows *= out_sizes[k];
  }
  TORCH_CHECK(
      std::max({copy.in_rows, copy.out_rows, copy.in_columns, copy.out_columns}) <= std::numeric_limits<int32_t>::max(),
      "mybackend: upsample_nearest takes planes of at most 2^31 rows and columns, got ", from.sizes());

  std::vector<int32_t> table;
  table.reserve(copy.out_rows + copy.out_columns);
  std::vector<int64_t> at(dims, 0);
  for (int64_t row = 0; row < copy.out_rows; row++) {
    int64_t in_row = 0;
    for (int64_t k = 0; k < dims - 1; k++) in_row = in_row * from.size(from.dim() - dims + k) + nearest(k, at[k]);
    table.push_back(static_cast<int32_t>(in_row));
    for (int64_t k = dims - 2; k >= 0 && ++at[k] == out_sizes[k]; k--) at[k] = 0;
  }
  copy.repeat = std::max<int64_t>(1, copy.out_columns / copy.in_columns);
  bool repeats = copy.out_columns == copy.in_columns * copy.repeat;
  for (int64_t o = 0; o < copy.out_columns; o++) {
    table.push_back(static_cast<int32_t>(nearest(dims - 1, o)));
    repeats = repeats && table.back() == o / copy.repeat;
  }
  const Tensor places = empty_on_current_device({static_cast<int64_t>(table.size())}, at::kInt);
  places.copy_(at::from_blob(table.data(), {static_cast<int64_t>(table.size())}, at::kInt));
  copy.row = places.const_data_ptr<int32_t>();
  copy.column = repeats ? nullptr : copy.row + copy.out_rows;
  kernels::resample_copy(runtime::current_stream(from.device().index()), copy);
  if (!out.is_same(to)) to.copy_(out);
}

void run(const Tensor& from, const Tensor& to, Kind kind, at::IntArrayRef in_sizes, at::IntArrayRef out_sizes,
         bool align_corners, at::ArrayRef<Scale> scales, bool backward) {
  if (to.numel() == 0) return;
  const bool nearest = kind == Kind::Nearest || kind == Kind::NearestExact;
  if (nearest && !backward) return copy_nearest(from, to, kind, out_sizes, scales);
  if (from.scalar_type() == at::kDouble)
    resample<double>(from, to, kind, in_sizes, out_sizes, align_corners, scales, backward);
  else
    resample<float>(from, to, kind, in_sizes, out_sizes, align_corners, scales, backward);
}

void forward(const Tensor& self, const Tensor& out, Kind kind, at::IntArrayRef output_size, bool align_corners,
             at::ArrayRef<Scale> scales) {
  run(self, out, kind, self.sizes(), output_size, align_corners, scales, false);
}

void backward(const Tensor& grad, const Tensor& grad_input, Kind kind, at::IntArrayRef output_size,
              at::IntArrayRef input_size, bool align_corners, at::ArrayRef<Scale> scales) {
  run(grad, grad_input, kind, input_size, output_size, align_corners, scales, true);
}

}  // namespace

#define MB_UPSAMPLE_1D(name, kind, align_parameter, align)                                                   \
  MB_IMPL_FUNC(name##_out)                                                                                   \
  (const Tensor& self, at::IntArrayRef output_size, align_parameter Scale scale, const Tensor& out) {        \
    forward(self, out, kind, output_size, align, {scale});                                                   \
  }                                                                                                          \
  MB_IMPL_FUNC(name##_backward_grad_input)                                                                   \
  (const Tensor& grad, at::IntArrayRef output_size, at::IntArrayRef input_size, align_parameter Scale scale, \
   const Tensor& out) {                                                                                      \
    backward(grad, out, kind, output_size, input_size, align, {scale});                                      \
  }

#define MB_UPSAMPLE_2D(name, kind, align_parameter, align)                                                        \
  MB_IMPL_FUNC(name##_out)                                                                                        \
  (const Tensor& self, at::IntArrayRef output_size, align_parameter Scale h, Scale w, const Tensor& out) {        \
    forward(self, out, kind, output_size, align, {h, w});                                                         \
  }                                                                                                               \
  MB_IMPL_FUNC(name##_backward_grad_input)                                                                        \
  (const Tensor& grad, at::IntArrayRef output_size, at::IntArrayRef input_size, align_parameter Scale h, Scale w, \
   const Tensor& out) {                                                                                           \
    backward(grad, out, kind, output_size, input_size, align, {h, w});                                            \
  }

#define MB_UPSAMPLE_3D(name, kind, align_parameter, align)                                                          \
  MB_IMPL_FUNC(name##_out)                                                                                          \
  (const Tensor& self, at::IntArrayRef output_size, align_parameter Scale d, Scale h, Scale w, const Tensor& out) { \
    forward(self, out, kind, output_size, align, {d, h, w});                                                        \
  }                                                                                                                 \
  MB_IMPL_FUNC(name##_backward_grad_input)                                                                          \
  (const Tensor& grad, at::IntArrayRef output_size, at::IntArrayRef input_size, align_parameter Scale d, Scale h,   \
   Scale w, const Tensor& out) {                                                                                    \
    backward(grad, out, kind, output_size, input_size, align, {d, h, w});                                           \
  }

#define MB_NO_ALIGN
#define MB_ALIGN bool align_corners,

MB_UPSAMPLE_1D(upsample_nearest1d, Kind::Nearest, MB_NO_ALIGN, false)
MB_UPSAMPLE_2D(upsample_nearest2d, Kind::Nearest, MB_NO_ALIGN, false)
MB_UPSAMPLE_3D(upsample_nearest3d, Kind::Nearest, MB_NO_ALIGN, false)
MB_UPSAMPLE_1D(_upsample_nearest_exact1d, Kind::NearestExact, MB_NO_ALIGN, false)
MB_UPSAMPLE_2D(_upsample_nearest_exact2d, Kind::NearestExact, MB_NO_ALIGN, false)
MB_UPSAMPLE_3D(_upsample_nearest_exact3d, Kind::NearestExact, MB_NO_ALIGN, false)
MB_UPSAMPLE_1D(upsample_linear1d, Kind::Linear, MB_ALIGN, align_corners)
MB_UPSAMPLE_2D(upsample_bilinear2d, Kind::Linear, MB_ALIGN, align_corners)
MB_UPSAMPLE_3D(upsample_trilinear3d, Kind::Linear, MB_ALIGN, align_corners)
MB_UPSAMPLE_2D(upsample_bicubic2d, Kind::Cubic, MB_ALIGN, align_corners)
MB_UPSAMPLE_2D(_upsample_bilinear2d_aa, Kind::LinearAA, MB_ALIGN, align_corners)
MB_UPSAMPLE_2D(_upsample_bicubic2d_aa, Kind::CubicAA, MB_ALIGN, align_corners)

}  // namespace mybackend::aten
