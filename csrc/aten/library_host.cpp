// The host driver's Library: libtorch's CPU kernels on the device's memory, through host_call().
//
// Matrix products call the kernel behind the CPU operator directly: shapes were checked by the same meta function, and
// the dispatcher would cost as much as a small product. Convolution goes through the operator, which chooses among
// oneDNN and ATen's own; it allocates its result, whose memory becomes the device's where that can be.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/_addmm_activation_native.h>
#include <ATen/ops/_int_mm_native.h>
#include <ATen/ops/addmm_native.h>
#include <ATen/ops/addmv_native.h>
#include <ATen/ops/baddbmm_native.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/dot_native.h>
#include <ATen/ops/mm_native.h>
#include <ATen/ops/vdot_native.h>

#include <cstring>

#include "csrc/aten/host_call.h"
#include "csrc/aten/library.h"

namespace mybackend::aten {
namespace {

using at::Scalar;
using at::Tensor;

// A structured CPU kernel without its meta function: outputs are given, so nobody asks for them.
template <class Op>
struct Kernel final : Op {
  const Tensor& maybe_get_output(int64_t) override { TORCH_INTERNAL_ASSERT(false); }
};

void store_scalar(const Tensor& value, const Tensor& out) {
  std::memcpy(out.mutable_data_ptr(), value.const_data_ptr(), value.itemsize());
}

class HostLibrary final : public Library {
 public:
  void mm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    host_call(
        out.get_device(),
        [](const Tensor& a, const Tensor& b, const Tensor& out) {
          Kernel<at::native::structured_mm_out_cpu>().impl(a, b, out);
        },
        a, b, Output{out});
  }

  void bmm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    host_call(
        out.get_device(),
        [](const Tensor& a, const Tensor& b, const Tensor& out) {
          Kernel<at::native::structured_bmm_out_cpu>().impl(a, b, out);
        },
        a, b, Output{out});
  }

  void addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
             Epilogue epilogue, const Tensor& out) const override {
    if (epilogue != Epilogue::None) return addmm_activation(self, a, b, beta, alpha, epilogue, out);
    if (self.is_same(out)) {  // the kernel asks whether they are one tensor
      return host_call(
          out.get_device(),
          [beta, alpha](const Tensor& a, const Tensor& b, const Tensor& out) {
            Kernel<at::native::structured_addmm_out_cpu>().impl(out, a, b, beta, alpha, out);
          },
          a, b, Output{out});
    }
    host_call(
        out.get_device(),
        [beta, alpha](const Tensor& self, const Tensor& a, const Tensor& b, const Tensor& out) {
          Kernel<at::native::structured_addmm_out_cpu>().impl(self, a, b, beta, alpha, out);
        },
        self, a, b, Output{out});
  }

  void baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
               const Tensor& out) const override {
    if (self.is_same(out)) {
      return host_call(
          out.get_device(),
          [beta, alpha](const Tensor& a, const Tensor& b, const Tensor& out) {
            Kernel<at::native::structured_baddbmm_out_cpu>().impl(out, a, b, beta, alpha, out);
          },
          a, b, Output{out});
    }
    host_call(
        out.get_device(),
        [beta, alpha](const Tensor& self, const Tensor& a, const Tensor& b, const Tensor& out) {
          Kernel<at::native::structured_baddbmm_out_cpu>().impl(self, a, b, beta, alpha, out);
        },
        self, a, b, Output{out});
  }

  void addmv(const Tensor& self, const Tensor& matrix, const Tensor& vector, const Scalar& beta, const Scalar& alpha,
             const Tensor& out) const override {
    if (self.is_same(out)) {
      return host_call(
          out.get_device(),
          [beta, alpha](const Tensor& matrix, const Tensor& vector, const Tensor& out) {
            Kernel<at::native::structured_addmv_out_cpu>().impl(out, matrix, vector, beta, alpha, out);
          },
          matrix, vector, Output{out});
    }
    host_call(
        out.get_device(),
        [beta, alpha](const Tensor& self, const Tensor& matrix, const Tensor& vector, const Tensor& out) {
          Kernel<at::native::structured_addmv_out_cpu>().impl(self, matrix, vector, beta, alpha, out);
        },
        self, matrix, vector, Output{out});
  }

  void dot(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    host_call(
        out.get_device(),
        [](const Tensor& a, const Tensor& b, const Tensor& out) { store_scalar(at::native::dot(a, b), out); }, a, b,
        Output{out});
  }

  void vdot(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    host_call(
        out.get_device(),
        [](const Tensor& a, const Tensor& b, const Tensor& out) { store_scalar(at::native::vdot(a, b), out); }, a, b,
        Output{out});
  }

  void int_mm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    host_call(
        out.get_device(), [](const Tensor& a, const Tensor& b, Tensor out) { at::native::_int_mm_out_cpu(a, b, out); },
        a, b, Output{out});
  }

  Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                     const ConvolutionParameters& p) const override {
    const auto convolve = [p](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
      return at::convolution(input, weight, bias, p.stride, p.padding, p.dilation, p.transposed, p.output_padding,
                             p.groups);
    };
    if (auto result = host_call_now(input.get_device(), convolve, input, weight, bias))
      return adopted(std::move(*result));
    const Tensor out = convolution_output(input, weight, p, convolution_format(input, weight, bias, p));
    host_call(
        out.get_device(),
        [convolve](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const Tensor& out) {
          out.copy_(convolve(input, weight, bias));
        },
        input, weight, bias, Output{out});
    return out;
  }

  std::array<Tensor, 3> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                             const ConvolutionParameters& p,
                                             std::array<bool, 3> wanted) const override {
    const int64_t channels = p.transposed ? weight.size(1) * p.groups : weight.size(0);
    const auto convolve = [p, channels, wanted](const Tensor& grad, const Tensor& input, const Tensor& weight) {
      return at::convolution_backward(grad, input, weight, at::IntArrayRef(channels), p.stride, p.padding, p.dilation,
                                      p.transposed, p.output_padding, p.groups, wanted);
    };
    if (auto result = host_call_now(grad.get_device(), convolve, grad, input, weight)) {
      auto& [of_input, of_weight, of_bias] = *result;
      return {adopted(std::move(of_input)), adopted(std::move(of_weight)), adopted(std::move(of_bias))};
    }
    const auto gradients =
        convolution_gradients(grad, input, weight, wanted, convolution_format(input, weight, std::nullopt, p));
    host_call(
        grad.get_device(),
        [convolve](const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& grad_input,
                   const Tensor& grad_weight, const Tensor& grad_bias) {
          auto [of_input, of_weight, of_bias] = convolve(grad, input, weight);
          if (grad_input.defined()) grad_input.copy_(of_input);
          if (grad_weight.defined()) grad_weight.copy_(of_weight);
          if (grad_bias.defined()) grad_bias.copy_(of_bias);
        },
        grad, input, weight, Output{gradients[0]}, Output{gradients[1]}, Output{gradients[2]});
    return gradients;
  }

 private:
  // The memory format in which the CPU's operators would make their outputs.
  static at::MemoryFormat convolution_format(const Tensor& input, const Tensor& weight,
                                             const std::optional<Tensor>& bias, const ConvolutionParameters& p) {
    // No backend of the CPU leaves the contiguous format unless one of the two asks for it.
    if (input.suggest_memory_format() == at::MemoryFormat::Contiguous &&
        weight.suggest_memory_format() == at::MemoryFormat::Contiguous)
      return at::MemoryFormat::Contiguous;
    detail::AliasScope scope;
    detail::BackendKeysOnly keys;
    const Tensor& on_host = scope.alias(input);
    const Tensor& weight_on_host = scope.alias(weight);
    const auto backend = at::native::select_conv_backend(
        on_host, weight_on_host, detail::pooled(scope, bias), c10::fromIntArrayRefSlow(p.stride),
        c10::fromIntArrayRefSlow(p.padding), c10::fromIntArrayRefSlow(p.dilation), p.transposed,
        c10::fromIntArrayRefSlow(p.output_padding), p.groups, std::nullopt);
    return at::native::_determine_backend_memory_format(on_host, weight_on_host, backend);
  }

  void addmm_activation(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                        Epilogue epilogue, const Tensor& out) const {
    const bool gelu = epilogue == Epilogue::Gelu;
    host_call(
        out.get_device(),
        [beta, alpha, gelu](const Tensor& self, const Tensor& a, const Tensor& b, const Tensor& out) {
          Kernel<at::native::structured_addmm_activation_out_cpu>().impl(self, a, b, beta, alpha, gelu, out);
        },
        self, a, b, Output{out});
  }
};

}  // namespace

const Library& host_library() {
  static const HostLibrary library;
  return library;
}

}  // namespace mybackend::aten
