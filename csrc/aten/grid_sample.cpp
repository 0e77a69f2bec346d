// grid_sampler_2d and _3d, and their gradients.
#include <ATen/core/Tensor.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/ops/zeros.h>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/kernels/grid_sample.h"
#include "csrc/runtime/stream.h"
#include "generated/grid_sample.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// The arguments of a kernel, and the contiguous tensors they point into.
struct Sampling {
  Tensor input, grid;
  kernels::GridSample args{};

  Sampling(const Tensor& input_in, const Tensor& grid_in, int64_t interpolation, int64_t padding, bool align_corners)
      : input(input_in.contiguous()), grid(grid_in.contiguous()) {
    TORCH_CHECK(grid.scalar_type() == input.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ",
                grid.scalar_type());
    TORCH_CHECK(interpolation >= 0 && interpolation <= 2, "grid_sampler(): unknown interpolation mode ", interpolation,
                ", expected 0 (bilinear), 1 (nearest) or 2 (bicubic)");
    TORCH_CHECK(padding >= 0 && padding <= 2, "grid_sampler(): unknown padding mode ", padding,
                ", expected 0 (zeros), 1 (border) or 2 (reflection)");
    args.dtype = to_dtype(input.scalar_type());
    args.batch = input.size(0);
    args.channels = input.size(1);
    args.dims = static_cast<int>(input.dim() - 2);
    for (int d = 0; d < 3; d++) {
      const int axis = d - (3 - args.dims);
      args.in_size[d] = axis < 0 ? 1 : input.size(2 + axis);
      args.out_size[d] = axis < 0 ? 1 : grid.size(1 + axis);
    }
    args.interpolation = static_cast<kernels::GridInterpolation>(interpolation);
    args.padding = static_cast<kernels::GridPadding>(padding);
    args.align_corners = align_corners;
    args.in = input.const_data_ptr();
    args.grid = grid.const_data_ptr();
  }

  device::Stream stream() const { return runtime::current_stream(input.device().index()); }
};

Tensor forward(const Sampling& sampling) {
  const Tensor &input = sampling.input, &grid = sampling.grid;
  c10::DimVector sizes(grid.sizes().slice(1, static_cast<size_t>(sampling.args.dims)));
  sizes.insert(sizes.begin(), {input.size(0), input.size(1)});
  Tensor out = empty_on_current_device(sizes, input.scalar_type());
  if (out.numel() > 0) kernels::grid_sample(sampling.stream(), sampling.args, out.mutable_data_ptr());
  return out;
}

std::tuple<Tensor, Tensor> backward(const Sampling& sampling, const Tensor& grad_output,
                                    std::array<bool, 2> output_mask) {
  const Tensor grad = grad_output.contiguous();
  const at::ScalarType type = sampling.input.scalar_type();
  Tensor grad_input, grad_grid;
  if (output_mask[0]) {
    const Tensor sums = at::zeros(sampling.input.sizes(), sampling.input.options().dtype(compute_type(type)));
    if (grad.numel() > 0)
      kernels::grid_sample_backward_input(sampling.stream(), sampling.args, grad.const_data_ptr(),
                                          sums.mutable_data_ptr());
    grad_input = sums.to(type);
  }
  if (output_mask[1]) {
    grad_grid = empty_on_current_device(sampling.grid.sizes(), type);
    if (grad_grid.numel() > 0)
      kernels::grid_sample_backward_grid(sampling.stream(), sampling.args, grad.const_data_ptr(),
                                         grad_grid.mutable_data_ptr());
  }
  return {std::move(grad_input), std::move(grad_grid)};
}

}  // namespace

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_2d(input, grid);
  return forward({input, grid, interpolation_mode, padding_mode, align_corners});
}

Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_3d(input, grid, interpolation_mode);
  return forward({input, grid, interpolation_mode, padding_mode, align_corners});
}

std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                    int64_t interpolation_mode, int64_t padding_mode,
                                                    bool align_corners, std::array<bool, 2> output_mask) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_2d(input, grid);
  return backward({input, grid, interpolation_mode, padding_mode, align_corners}, grad_output, output_mask);
}

std::tuple<Tensor, Tensor> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                    int64_t interpolation_mode, int64_t padding_mode,
                                                    bool align_corners, std::array<bool, 2> output_mask) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_3d(input, grid, interpolation_mode);
  return backward({input, grid, interpolation_mode, padding_mode, align_corners}, grad_output, output_mask);
}

}  // namespace mybackend::aten
