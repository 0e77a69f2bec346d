// Entry points of csrc/kernels/channel_norm*.cu: what batch norm and group norm are made of.
//
// The data is seen as n x c x s, dense, or with `channels_last` as n * s rows of c channels. A statistic of a channel
// is found in two steps: each group of elements gives a partial result, and the groups of a channel are combined in
// order, so nothing depends on the number of threads. There are channel_groups(layout) groups, and a partial result is
// an array of groups x c. All statistics are of the compute type (float for half and bfloat16) unless a dtype says
// otherwise.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

struct ChannelLayout {
  int64_t n, c, s;
  bool channels_last;
};

// A plane of s elements is a group; of rows there are at most 512 groups of at least 64.
inline int64_t channel_groups(const ChannelLayout& layout) {
  constexpr int64_t kFewestRows = 64, kMostGroups = 512;
  if (!layout.channels_last) return layout.n;
  const int64_t groups = (layout.n * layout.s + kFewestRows - 1) / kFewestRows;
  return groups < kMostGroups ? groups : kMostGroups;
}

// mean and sum of squares about the mean of each group.
MB_DECLARE_KERNEL(channel_moments, void(Stream stream, const ChannelLayout& layout, DType dtype, const void* in,
                                        void* mean, void* squares));

// sum of grad and of grad * (in - mean[channel]) of each group.
MB_DECLARE_KERNEL(channel_gradient_sums, void(Stream stream, const ChannelLayout& layout, DType dtype, const void* grad,
                                              const void* in, const void* mean, void* sum, void* product));

// out = (in - mean) * scale + shift with the values of the channel; `shift` may be nullptr.
MB_DECLARE_KERNEL(channel_normalize, void(Stream stream, const ChannelLayout& layout, DType dtype, const void* in,
                                          const void* mean, const void* scale, const void* shift, void* out));

// grad_in = a * grad + b * (in - mean) + c with the values of the channel.
MB_DECLARE_KERNEL(channel_normalize_backward,
                  void(Stream stream, const ChannelLayout& layout, DType dtype, const void* grad, const void* in,
                       const void* mean, const void* a, const void* b, const void* c, void* grad_in));

// An array of one value a channel, stored as `dtype`; data is nullptr where there is none.
struct ChannelArray {
  void* data = nullptr;
  DType dtype = DType::Float;
};

struct BatchNormStatistics {
  DType compute;
  int64_t channels, groups;
  double eps, momentum;
  ChannelLayout layout;
};

// Combines groups: mean, biased variance (or nullptr) and 1 / sqrt(variance + eps) (or nullptr) of each channel;
// running statistics, where there are any, move towards the mean and the unbiased variance by `momentum`.
MB_DECLARE_KERNEL(batch_norm_statistics, void(Stream stream, const BatchNormStatistics& what, const void* group_mean,
                                              const void* group_squares, void* mean, void* variance, void* invstd,
                                              ChannelArray running_mean, ChannelArray running_var));

// scale = invstd * weight and shift = bias, in the compute type.
MB_DECLARE_KERNEL(batch_norm_coefficients, void(Stream stream, DType compute, int64_t channels, const void* invstd,
                                                ChannelArray weight, ChannelArray bias, void* scale, void* shift));

// Adds groups up: grad_bias = sum, grad_weight = product * invstd, and, in training, the coefficients of
// channel_normalize_backward; in evaluation b and c are zero. `count` is the number of elements of a channel.
MB_DECLARE_KERNEL(batch_norm_gradients,
                  void(Stream stream, DType compute, int64_t channels, int64_t groups, double count, bool training,
                       const void* sum, const void* product, const void* invstd, ChannelArray weight,
                       ChannelArray grad_weight, ChannelArray grad_bias, void* a, void* b, void* c));

struct GroupNormShape {
  int64_t n, channels, groups, s;  // `s` elements a channel
};

// From the moments of n x groups rows: rstd of each, and mean, scale and shift of each of n x channels planes.
MB_DECLARE_KERNEL(group_norm_coefficients, void(Stream stream, DType compute, const GroupNormShape& shape, double eps,
                                                const void* mean, const void* squares, void* rstd, ChannelArray weight,
                                                ChannelArray bias, void* plane_mean, void* scale, void* shift));

// From the sums of n x channels planes: the coefficients of channel_normalize_backward of each plane.
MB_DECLARE_KERNEL(group_norm_gradients,
                  void(Stream stream, DType compute, const GroupNormShape& shape, const void* sum, const void* product,
                       const void* rstd, ChannelArray weight, void* a, void* b, void* c));

// grad_weight = sum over n of product * rstd, grad_bias = sum over n of sum.
MB_DECLARE_KERNEL(group_norm_weight_gradients,
                  void(Stream stream, DType compute, const GroupNormShape& shape, const void* sum, const void* product,
                       const void* rstd, ChannelArray grad_weight, ChannelArray grad_bias));

}  // namespace mybackend::kernels
