// Convolution and its gradients, for every rank, transposed, grouped and dilated. at::convolution has checked shapes,
// expanded the parameters and made a 1-d convolution a 2-d one before it comes here; the work is the library's.
#include <ATen/native/ConvUtils.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/library.h"
#include "generated/convolution.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

ConvolutionParameters parameters_of(IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                    IntArrayRef output_padding, int64_t groups) {
  return {c10::DimVector(stride),
          c10::DimVector(padding),
          c10::DimVector(dilation),
          c10::DimVector(output_padding),
          transposed,
          groups};
}

}  // namespace

Tensor convolution_output(const Tensor& input, const Tensor& weight, const ConvolutionParameters& p,
                          at::MemoryFormat format) {
  const std::vector<int64_t> size =
      p.transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), p.padding, p.output_padding, p.stride,
                                                 p.dilation, p.groups)
                   : at::native::conv_output_size(input.sizes(), weight.sizes(), p.padding, p.stride, p.dilation);
  return empty_on_current_device(size, input.scalar_type(), format);
}

std::array<Tensor, 3> convolution_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                            std::array<bool, 3> wanted, at::MemoryFormat format) {
  std::array<Tensor, 3> gradients;
  if (wanted[0]) gradients[0] = empty_on_current_device(input.sizes(), input.scalar_type(), format);
  if (wanted[1]) gradients[1] = empty_on_current_device(weight.sizes(), weight.scalar_type(), format);
  if (wanted[2]) gradients[2] = empty_on_current_device({grad.size(1)}, grad.scalar_type(), std::nullopt);
  return gradients;
}

Tensor convolution_overrideable(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ",
              weight.scalar_type());
  return library().convolution(input, weight, bias,
                               parameters_of(stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_overrideable(const Tensor& grad_output, const Tensor& input,
                                                                     const Tensor& weight, IntArrayRef stride,
                                                                     IntArrayRef padding, IntArrayRef dilation,
                                                                     bool transposed, IntArrayRef output_padding,
                                                                     int64_t groups, std::array<bool, 3> output_mask) {
  auto [of_input, of_weight, of_bias] = library().convolution_backward(
      grad_output, input, weight, parameters_of(stride, padding, dilation, transposed, output_padding, groups),
      output_mask);
  return {of_input, of_weight, of_bias};
}

}  // namespace mybackend::aten
