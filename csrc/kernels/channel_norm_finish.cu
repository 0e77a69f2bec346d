// The small kernels of batch norm and group norm: from the partial results of groups to statistics, coefficients and
// weight gradients. One value a channel (or plane), so what counts here is that groups are combined in order.
// Called by csrc/aten/batch_norm.cpp and group_norm.cpp. Spec: test/ops/test_normalization.py.
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"
#include "csrc/kernels/channel_norm.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int kLanes = 128;

// Element i of an array whose dtype is known at run time; `absent` where there is no array.
template <class A>
MB_DEVICE A get(const ChannelArray& array, int64_t i, A absent) {
  if (array.data == nullptr) return absent;
  switch (array.dtype) {
    case DType::Float:
      return A(static_cast<const float*>(array.data)[i]);
    case DType::Double:
      return A(static_cast<const double*>(array.data)[i]);
    case DType::Half:
      return A(device::widen(static_cast<const half*>(array.data)[i]));
    default:
      return A(device::widen(static_cast<const bfloat16*>(array.data)[i]));
  }
}

template <class A>
MB_DEVICE void put(const ChannelArray& array, int64_t i, A value) {
  if (array.data == nullptr) return;
  switch (array.dtype) {
    case DType::Float:
      static_cast<float*>(array.data)[i] = float(value);
      break;
    case DType::Double:
      static_cast<double*>(array.data)[i] = double(value);
      break;
    case DType::Half:
      static_cast<half*>(array.data)[i] = device::narrow<half>(float(value));
      break;
    default:
      static_cast<bfloat16*>(array.data)[i] = device::narrow<bfloat16>(float(value));
  }
}

// Up to kLanes consecutive channels of a block.
struct Lanes {
  int64_t first, width;
  MB_DEVICE Lanes(int64_t index, int64_t n) : first(index * kLanes), width(n - first < kLanes ? n - first : kLanes) {}
};

device::Grid lanes_grid(int64_t n, int64_t groups) {
  return {device::ceil_div(n, kLanes), kLanes, kLanes * groups};
}

template <class A>
struct Statistics {
  BatchNormStatistics what;
  const A* group_mean;
  const A* group_squares;
  A* means;
  A* variances;
  A* invstds;
  ChannelArray running_mean, running_var;

  MB_DEVICE int64_t rows_before(int64_t group) const {
    const ChannelLayout& l = what.layout;
    return l.channels_last ? l.n * l.s * group / what.groups : group * l.s;
  }

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, mean, kLanes);
    MB_SHARED(block, A, squares, kLanes);
    const Lanes lanes(block.index, what.channels);
    block.each(lanes.width, [&](int64_t i) {
      mean[i] = A(0);
      squares[i] = A(0);
    });
    for (int64_t group = 0; group < what.groups; group++) {
      const A* other_mean = group_mean + group * what.channels + lanes.first;
      const A* other_squares = group_squares + group * what.channels + lanes.first;
      const A before = A(rows_before(group)), after = A(rows_before(group + 1));
      const A share = (after - before) / after, cross = before * share;
      block.each(lanes.width, [&](int64_t i) {
        const A distance = other_mean[i] - mean[i];
        mean[i] += distance * share;
        squares[i] += other_squares[i] + distance * distance * cross;
      });
    }
    const A count = A(rows_before(what.groups)), eps = A(what.eps), momentum = A(what.momentum);
    block.each(lanes.width, [&](int64_t i) {
      const int64_t c = lanes.first + i;
      const A variance = squares[i] / count;
      means[c] = mean[i];
      if (variances != nullptr) variances[c] = variance;
      if (invstds != nullptr) invstds[c] = math::rsqrt(variance + eps);
      put<A>(running_mean, c, (A(1) - momentum) * get<A>(running_mean, c, A(0)) + momentum * mean[i]);
      const A unbiased = squares[i] / (count - A(1));
      put<A>(running_var, c, (A(1) - momentum) * get<A>(running_var, c, A(0)) + momentum * unbiased);
    });
  }
};

template <class A>
struct Coefficients {
  int64_t channels;
  const A* invstd;
  ChannelArray weight, bias;
  A* scale;
  A* shift;

  MB_DEVICE void operator()(Block block) const {
    const Lanes lanes(block.index, channels);
    block.each(lanes.width, [&](int64_t i) {
      const int64_t c = lanes.first + i;
      scale[c] = invstd[c] * get<A>(weight, c, A(1));
      shift[c] = get<A>(bias, c, A(0));
    });
  }
};

template <class A>
struct BatchGradients {
  int64_t channels, groups;
  A count;
  bool training;
  const A* sums;
  const A* products;
  const A* invstd;
  ChannelArray weight, grad_weight, grad_bias;
  A* a;
  A* b;
  A* c;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, sum, kLanes);
    MB_SHARED(block, A, product, kLanes);
    const Lanes lanes(block.index, channels);
    block.each(lanes.width, [&](int64_t i) {
      sum[i] = A(0);
      product[i] = A(0);
    });
    for (int64_t group = 0; group < groups; group++) {
      const int64_t at = group * channels + lanes.first;
      block.each(lanes.width, [&](int64_t i) {
        sum[i] += sums[at + i];
        product[i] += products[at + i];
      });
    }
    block.each(lanes.width, [&](int64_t i) {
      const int64_t channel = lanes.first + i;
      const A inverse = invstd[channel], scale = inverse * get<A>(weight, channel, A(1));
      put<A>(grad_weight, channel, product[i] * inverse);
      put<A>(grad_bias, channel, sum[i]);
      a[channel] = scale;
      b[channel] = training ? -scale * inverse * inverse * product[i] / count : A(0);
      c[channel] = training ? -scale * sum[i] / count : A(0);
    });
  }
};

template <class A>
struct GroupCoefficients {
  GroupNormShape shape;
  A eps;
  const A* mean;
  const A* squares;
  A* rstds;
  ChannelArray weight, bias;
  A* plane_mean;
  A* scale;
  A* shift;

  // A block a group.
  MB_DEVICE void operator()(Block block) const {
    const int64_t depth = shape.channels / shape.groups;
    const int64_t first = block.index * depth, channel = first % shape.channels;
    const A m = mean[block.index];
    const A rstd = math::rsqrt(squares[block.index] / A(depth * shape.s) + eps);
    block.each(1, [&](int64_t) { rstds[block.index] = rstd; });
    block.each(depth, [&](int64_t i) {
      plane_mean[first + i] = m;
      scale[first + i] = rstd * get<A>(weight, channel + i, A(1));
      shift[first + i] = get<A>(bias, channel + i, A(0));
    });
  }
};

template <class A>
struct GroupGradients {
  GroupNormShape shape;
  const A* sums;
  const A* products;
  const A* rstds;
  ChannelArray weight;
  A* a;
  A* b;
  A* c;

  // A block a group.
  MB_DEVICE void operator()(Block block) const {
    const int64_t depth = shape.channels / shape.groups;
    const int64_t first = block.index * depth, channel = first % shape.channels;
    const A rstd = rstds[block.index], count = A(depth * shape.s);
    const A sum = block.sum<A>(depth, [&](int64_t i) { return sums[first + i] * get<A>(weight, channel + i, A(1)); });
    const A product =
        block.sum<A>(depth, [&](int64_t i) { return products[first + i] * get<A>(weight, channel + i, A(1)); });
    block.each(depth, [&](int64_t i) {
      a[first + i] = rstd * get<A>(weight, channel + i, A(1));
      b[first + i] = -rstd * rstd * rstd * product / count;
      c[first + i] = -rstd * sum / count;
    });
  }
};

template <class A>
struct GroupWeightGradients {
  GroupNormShape shape;
  const A* sums;
  const A* products;
  const A* rstds;
  ChannelArray grad_weight, grad_bias;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, of_weight, kLanes);
    MB_SHARED(block, A, of_bias, kLanes);
    const Lanes lanes(block.index, shape.channels);
    const int64_t depth = shape.channels / shape.groups;
    block.each(lanes.width, [&](int64_t i) {
      of_weight[i] = A(0);
      of_bias[i] = A(0);
    });
    for (int64_t n = 0; n < shape.n; n++) {
      block.each(lanes.width, [&](int64_t i) {
        const int64_t channel = lanes.first + i, plane = n * shape.channels + channel;
        of_weight[i] += products[plane] * rstds[n * shape.groups + channel / depth];
        of_bias[i] += sums[plane];
      });
    }
    block.each(lanes.width, [&](int64_t i) {
      put<A>(grad_weight, lanes.first + i, of_weight[i]);
      put<A>(grad_bias, lanes.first + i, of_bias[i]);
    });
  }
};

device::Grid group_grid(const GroupNormShape& shape) {
  return {shape.n * shape.groups, 32, shape.channels / shape.groups};
}

}  // namespace

MB_DEFINE_KERNEL(batch_norm_statistics,
                 (Stream stream, const BatchNormStatistics& what, const void* group_mean, const void* group_squares,
                  void* mean, void* variance, void* invstd, ChannelArray running_mean, ChannelArray running_var)) {
  visit<Floats>(what.compute, "batch_norm", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, lanes_grid(what.channels, what.groups),
                   Statistics<A>{what, static_cast<const A*>(group_mean), static_cast<const A*>(group_squares),
                                 static_cast<A*>(mean), static_cast<A*>(variance), static_cast<A*>(invstd),
                                 running_mean, running_var});
  });
}

MB_DEFINE_KERNEL(batch_norm_coefficients, (Stream stream, DType compute, int64_t channels, const void* invstd,
                                           ChannelArray weight, ChannelArray bias, void* scale, void* shift)) {
  visit<Floats>(compute, "batch_norm", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, lanes_grid(channels, 1),
                   Coefficients<A>{channels, static_cast<const A*>(invstd), weight, bias, static_cast<A*>(scale),
                                   static_cast<A*>(shift)});
  });
}

MB_DEFINE_KERNEL(batch_norm_gradients,
                 (Stream stream, DType compute, int64_t channels, int64_t groups, double count, bool training,
                  const void* sum, const void* product, const void* invstd, ChannelArray weight,
                  ChannelArray grad_weight, ChannelArray grad_bias, void* a, void* b, void* c)) {
  visit<Floats>(compute, "batch_norm_backward", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, lanes_grid(channels, groups),
                   BatchGradients<A>{channels, groups, A(count), training, static_cast<const A*>(sum),
                                     static_cast<const A*>(product), static_cast<const A*>(invstd), weight, grad_weight,
                                     grad_bias, static_cast<A*>(a), static_cast<A*>(b), static_cast<A*>(c)});
  });
}

MB_DEFINE_KERNEL(group_norm_coefficients, (Stream stream, DType compute, const GroupNormShape& shape, double eps,
                                           const void* mean, const void* squares, void* rstd, ChannelArray weight,
                                           ChannelArray bias, void* plane_mean, void* scale, void* shift)) {
  visit<Floats>(compute, "group_norm", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, group_grid(shape),
                   GroupCoefficients<A>{shape, A(eps), static_cast<const A*>(mean), static_cast<const A*>(squares),
                                        static_cast<A*>(rstd), weight, bias, static_cast<A*>(plane_mean),
                                        static_cast<A*>(scale), static_cast<A*>(shift)});
  });
}

MB_DEFINE_KERNEL(group_norm_gradients,
                 (Stream stream, DType compute, const GroupNormShape& shape, const void* sum, const void* product,
                  const void* rstd, ChannelArray weight, void* a, void* b, void* c)) {
  visit<Floats>(compute, "group_norm_backward", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, group_grid(shape),
                   GroupGradients<A>{shape, static_cast<const A*>(sum), static_cast<const A*>(product),
                                     static_cast<const A*>(rstd), weight, static_cast<A*>(a), static_cast<A*>(b),
                                     static_cast<A*>(c)});
  });
}

MB_DEFINE_KERNEL(group_norm_weight_gradients,
                 (Stream stream, DType compute, const GroupNormShape& shape, const void* sum, const void* product,
                  const void* rstd, ChannelArray grad_weight, ChannelArray grad_bias)) {
  visit<Floats>(compute, "group_norm_backward", [&](auto type) {
    using A = typename decltype(type)::type;
    device::launch(stream, lanes_grid(shape.channels, shape.n),
                   GroupWeightGradients<A>{shape, static_cast<const A*>(sum), static_cast<const A*>(product),
                                           static_cast<const A*>(rstd), grad_weight, grad_bias});
  });
}

}  // namespace mybackend::kernels
