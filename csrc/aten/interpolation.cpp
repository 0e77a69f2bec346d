#include "csrc/aten/interpolation.h"

#include <ATen/native/UpSample.h>

#include <cmath>

namespace mybackend::aten::interpolation {
namespace {

// Adds `w` to the weight of input i, which is kept inside the array.
void add_tap(Axis& axis, int64_t o, int64_t i, double w) {
  i = std::clamp<int64_t>(i, 0, axis.in - 1);
  std::vector<double>& row = axis.weight[o];
  if (row.empty()) axis.start[o] = static_cast<int32_t>(i);
  const size_t at = static_cast<size_t>(i - axis.start[o]);
  if (at >= row.size()) row.resize(at + 1, 0.0);
  row[at] += w;
}

double triangle_filter(double x) {
  return std::max(0.0, 1 - std::fabs(x));
}

double cubic_filter(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

}  // namespace

template <class C>
Axis axis_of(Kind kind, int64_t in, int64_t out, bool align_corners, Scale scale) {
  using namespace at::native;
  Axis axis{
      .in = in, .out = out, .start = std::vector<int32_t>(out, 0), .weight = std::vector<std::vector<double>>(out)};
  const bool nearest = kind == Kind::Nearest || kind == Kind::NearestExact;
  const C ratio = nearest ? C(1) : area_pixel_compute_scale<C>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; o++) {
    switch (kind) {
      case Kind::Nearest:
        add_tap(axis, o, nearest_idx(o, in, out, scale), 1);
        break;
      case Kind::NearestExact:
        add_tap(axis, o, nearest_exact_idx(o, in, out, scale), 1);
        break;
      case Kind::Linear: {
        int64_t i0 = 0, i1 = 0;
        C w0 = 0, w1 = 0;
        compute_source_index_and_lambda<C, C>(i0, i1, w0, w1, ratio, o, in, out, align_corners);
        add_tap(axis, o, i0, w0);
        add_tap(axis, o, i1, w1);
        break;
      }
      case Kind::Cubic: {
        const C real = area_pixel_compute_source_index<C>(ratio, o, align_corners, true);
        int64_t i = 0;
        C t = 0, w[4];
        guard_index_and_lambda(real, in, i, t);
        get_cubic_upsample_coefficients<C>(w, t);
        for (int64_t k = 0; k < 4; k++) add_tap(axis, o, i + k - 1, w[k]);
        break;
      }
      default: {
        const bool cubic = kind == Kind::CubicAA;
        const double half = cubic ? 2 : 1, wide = std::max<double>(ratio, 1);
        const double center = ratio * (o + 0.5), support = half * wide;
        const int64_t begin = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
        const int64_t end = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in);
        double total = 0;
        std::vector<double> w;
        for (int64_t i = begin; i < end; i++) {
          const double x = (i - center + 0.5) / wide;
          w.push_back(cubic ? cubic_filter(x) : triangle_filter(x));
          total += w.back();
        }
        for (int64_t i = begin; i < end; i++) add_tap(axis, o, i, total == 0 ? w[i - begin] : w[i - begin] / total);
      }
    }
  }
  return axis;
}

template Axis axis_of<float>(Kind, int64_t, int64_t, bool, Scale);
template Axis axis_of<double>(Kind, int64_t, int64_t, bool, Scale);

}  // namespace mybackend::aten::interpolation
