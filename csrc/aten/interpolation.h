// What interpolation makes of an axis: for each output a short weighted sum of neighbouring inputs, worked out on the
// host with upstream's index arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace mybackend::aten::interpolation {

using Scale = std::optional<double>;

enum class Kind { Nearest, NearestExact, Linear, Cubic, LinearAA, CubicAA };

// output o = sum over t of weight[o][t] * input start[o] + t
struct Axis {
  int64_t in = 0, out = 0;
  std::vector<int32_t> start;
  std::vector<std::vector<double>> weight;

  bool identity() const {
    if (in != out) return false;
    for (int64_t o = 0; o < out; o++)
      if (start[o] != o || weight[o].size() != 1 || weight[o][0] != 1) return false;
    return true;
  }

  Axis transposed() const {
    Axis t{.in = out, .out = in, .start = std::vector<int32_t>(in, 0), .weight = std::vector<std::vector<double>>(in)};
    for (int64_t o = 0; o < out; o++) {
      for (size_t k = 0; k < weight[o].size(); k++) {
        const int64_t i = start[o] + static_cast<int64_t>(k);
        if (t.weight[i].empty()) t.start[i] = static_cast<int32_t>(o);
        t.weight[i].resize(o - t.start[i] + 1, 0.0);
        t.weight[i].back() += weight[o][k];
      }
    }
    return t;
  }

  // Inputs [first, second) that outputs [begin, end) are made of.
  std::pair<int32_t, int32_t> inputs(int64_t begin, int64_t end) const {
    int32_t first = static_cast<int32_t>(in), last = 0;
    for (int64_t o = begin; o < std::min(end, out); o++) {
      if (weight[o].empty()) continue;
      first = std::min(first, start[o]);
      last = std::max(last, start[o] + static_cast<int32_t>(weight[o].size()));
    }
    return {std::min(first, last), last};
  }
};

// The axis of `kind` from `in` to `out` elements. C is the type that upstream computes indices in: float or double.
template <class C>
Axis axis_of(Kind kind, int64_t in, int64_t out, bool align_corners, Scale scale);

}  // namespace mybackend::aten::interpolation
