// A transposed convolution is the gradient of an ordinary one with regard to its input, and the other way round, so
// three library calls serve all six. Inputs are made dense in the format of the outputs. Of the algorithms that cuDNN's
// heuristics rank, the first that fits into memory is taken (a deterministic one if torch asks for that).
#include "csrc/aten/cuda_convolution.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "csrc/aten/cudnn.h"
#include "csrc/device/api.h"
#include "csrc/device/check.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

#define MB_CUDNN_CHECK(expression)                                                                               \
  do {                                                                                                           \
    const cudnn::Status mb_status_ = (expression);                                                               \
    TORCH_CHECK(mb_status_ == 0, "mybackend: cuDNN error ", cudnn::functions().error_string(mb_status_), " in ", \
                #expression);                                                                                    \
  } while (0)

constexpr int kMostDims = 5;
constexpr int kAlgorithms = 8;

cudnn::DataType type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return cudnn::Float;
    case at::kDouble:
      return cudnn::Double;
    case at::kHalf:
      return cudnn::Half;
    case at::kBFloat16:
      return cudnn::BFloat16;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "\"convolution\" not implemented for '", tensor.scalar_type(), "'");
  }
}

struct Ints {
  int values[kMostDims];
  explicit Ints(at::IntArrayRef from) {
    TORCH_CHECK(from.size() <= kMostDims, "mybackend: a convolution over ", from.size() - 2,
                " dimensions is not supported");
    for (size_t i = 0; i < from.size(); i++) values[i] = static_cast<int>(from[i]);
  }
};

struct TensorDesc {
  cudnn::TensorDesc value = nullptr;
  explicit TensorDesc(const Tensor& t) {
    MB_CUDNN_CHECK(cudnn::functions().tensor_create(&value));
    MB_CUDNN_CHECK(cudnn::functions().tensor_set(value, type_of(t), static_cast<int>(t.dim()), Ints(t.sizes()).values,
                                                 Ints(t.strides()).values));
  }
  ~TensorDesc() { cudnn::functions().tensor_destroy(value); }
};

struct FilterDesc {
  cudnn::FilterDesc value = nullptr;
  FilterDesc(const Tensor& t, cudnn::Format format) {
    MB_CUDNN_CHECK(cudnn::functions().filter_create(&value));
    MB_CUDNN_CHECK(
        cudnn::functions().filter_set(value, type_of(t), format, static_cast<int>(t.dim()), Ints(t.sizes()).values));
  }
  ~FilterDesc() { cudnn::functions().filter_destroy(value); }
};

struct ConvolutionDesc {
  cudnn::ConvolutionDesc value = nullptr;
  ConvolutionDesc(const ConvolutionParameters& p, cudnn::DataType type) {
    const cudnn::Functions& f = cudnn::functions();
    MB_CUDNN_CHECK(f.convolution_create(&value));
    const auto compute = type == cudnn::Double ? cudnn::Double : cudnn::Float;
    MB_CUDNN_CHECK(f.convolution_set(value, static_cast<int>(p.padding.size()), Ints(p.padding).values,
                                     Ints(p.stride).values, Ints(p.dilation).values, cudnn::kCrossCorrelation,
                                     compute));
    MB_CUDNN_CHECK(f.convolution_set_groups(value, static_cast<int>(p.groups)));
    const bool fma = type == cudnn::Float && !at::globalContext().allowTF32CuDNN();
    const auto math = type == cudnn::Half || type == cudnn::BFloat16 ? cudnn::TensorOpMath
                      : fma                                          ? cudnn::FmaMath
                                                                     : cudnn::DefaultMath;
    MB_CUDNN_CHECK(f.convolution_set_math(value, math));
  }
  ~ConvolutionDesc() { cudnn::functions().convolution_destroy(value); }
};

at::MemoryFormat format_of(const Tensor& t) {
  return t.suggest_memory_format();
}
cudnn::Format filter_format(at::MemoryFormat format) {
  return format == at::MemoryFormat::Contiguous ? cudnn::NCHW : cudnn::NHWC;
}

int choose(const cudnn::AlgorithmPerformance* ranked, int count) {
  size_t free = 0, total = 0;
  MB_CHECK(device::api().mem_get_info(&free, &total));
  for (int i = 0; i < count; i++) {
    const bool allowed = !at::globalContext().deterministicCuDNN() || ranked[i].determinism == cudnn::kDeterministic;
    if (ranked[i].status == 0 && allowed && ranked[i].memory <= free) return ranked[i].algorithm;
  }
  TORCH_CHECK(false, "mybackend: cuDNN has no algorithm for this convolution");
}

// The scaling factors of every call, in the type in which the library computes.
struct Factors {
  float one = 1, zero = 0;
  double one_double = 1, zero_double = 0;
  bool wide;
  const void* alpha() const { return wide ? static_cast<const void*>(&one_double) : &one; }
  const void* beta() const { return wide ? static_cast<const void*>(&zero_double) : &zero; }
};

Tensor workspace(const Tensor& like, size_t bytes) {
  return at::empty({static_cast<int64_t>(bytes)}, like.options().dtype(at::kByte));
}

// One call of the library: x (its input), w (its filter) and y (its output) of an ordinary convolution.
class Call {
 public:
  Call(const Tensor& x, const Tensor& w, const Tensor& y, const ConvolutionParameters& p)
      : x_(x),
        w_(w),
        y_(y),
        handle_(cudnn::handle(x.get_device(), runtime::current_stream(x.get_device()))),
        x_desc_(x),
        y_desc_(y),
        w_desc_(w, filter_format(format_of(w))),
        desc_(p, type_of(x)),
        factors_{.wide = type_of(x) == cudnn::Double} {}

  void forward() {
    MB_CUDNN_CHECK(f_.forward_algorithms(handle_, x_desc_.value, w_desc_.value, desc_.value, y_desc_.value, kAlgorithms,
                                         &count_, ranked_));
    const int algorithm = choose(ranked_, count_);
    size_t bytes = 0;
    MB_CUDNN_CHECK(
        f_.forward_workspace(handle_, x_desc_.value, w_desc_.value, desc_.value, y_desc_.value, algorithm, &bytes));
    const Tensor space = workspace(x_, bytes);
    MB_CUDNN_CHECK(f_.forward(handle_, factors_.alpha(), x_desc_.value, x_.const_data_ptr(), w_desc_.value,
                              w_.const_data_ptr(), desc_.value, algorithm, space.mutable_data_ptr(), bytes,
                              factors_.beta(), y_desc_.value, y_.mutable_data_ptr()));
  }

  void to_data() {
    MB_CUDNN_CHECK(f_.data_algorithms(handle_, w_desc_.value, y_desc_.value, desc_.value, x_desc_.value, kAlgorithms,
                                      &count_, ranked_));
    const int algorithm = choose(ranked_, count_);
    size_t bytes = 0;
    MB_CUDNN_CHECK(
        f_.data_workspace(handle_, w_desc_.value, y_desc_.value, desc_.value, x_desc_.value, algorithm, &bytes));
    const Tensor space = workspace(x_, bytes);
    MB_CUDNN_CHECK(f_.data(handle_, factors_.alpha(), w_desc_.value, w_.const_data_ptr(), y_desc_.value,
                           y_.const_data_ptr(), desc_.value, algorithm, space.mutable_data_ptr(), bytes,
                           factors_.beta(), x_desc_.value, x_.mutable_data_ptr()));
  }

  void to_filter() {
    MB_CUDNN_CHECK(f_.filter_algorithms(handle_, x_desc_.value, y_desc_.value, desc_.value, w_desc_.value, kAlgorithms,
                                        &count_, ranked_));
    const int algorithm = choose(ranked_, count_);
    size_t bytes = 0;
    MB_CUDNN_CHECK(
        f_.filter_workspace(handle_, x_desc_.value, y_desc_.value, desc_.value, w_desc_.value, algorithm, &bytes));
    const Tensor space = workspace(x_, bytes);
    MB_CUDNN_CHECK(f_.filter(handle_, factors_.alpha(), x_desc_.value, x_.const_data_ptr(), y_desc_.value,
                             y_.const_data_ptr(), desc_.value, algorithm, space.mutable_data_ptr(), bytes,
                             factors_.beta(), w_desc_.value, w_.mutable_data_ptr()));
  }

 private:
  const Tensor &x_, &w_, &y_;
  const cudnn::Functions& f_ = cudnn::functions();
  cudnn::Handle handle_;
  TensorDesc x_desc_, y_desc_;
  FilterDesc w_desc_;
  ConvolutionDesc desc_;
  Factors factors_;
  int count_ = 0;
  cudnn::AlgorithmPerformance ranked_[kAlgorithms];
};

}  // namespace

void cuda_convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      const ConvolutionParameters& p, const Tensor& out) {
  if (out.numel() == 0) return;
  const auto format = format_of(out);
  const Tensor x = input.contiguous(format), w = weight.contiguous(format);
  p.transposed ? Call(out, w, x, p).to_data() : Call(x, w, out, p).forward();
  if (bias && bias->defined()) {
    c10::DimVector shape(static_cast<size_t>(out.dim()), 1);
    shape[1] = bias->numel();
    out.add_(bias->view(shape));
  }
}

void cuda_convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                               const ConvolutionParameters& p, const std::array<Tensor, 3>& gradients) {
  const auto& [grad_input, grad_weight, grad_bias] = gradients;
  const auto format = format_of(grad_input.defined() ? grad_input : grad_weight.defined() ? grad_weight : input);
  const Tensor dy = grad.contiguous(format);
  if (grad_input.defined() && grad_input.numel() != 0) {
    const Tensor w = weight.contiguous(format);
    p.transposed ? Call(dy, w, grad_input, p).forward() : Call(grad_input, w, dy, p).to_data();
  }
  if (grad_weight.defined() && grad_weight.numel() != 0) {
    const Tensor x = input.contiguous(format);
    p.transposed ? Call(dy, grad_weight, x, p).to_filter() : Call(x, grad_weight, dy, p).to_filter();
  }
  if (grad_bias.defined()) {
    c10::DimVector others;
    for (int64_t d = 0; d < grad.dim(); d++)
      if (d != 1) others.push_back(d);
    Tensor sum = grad_bias;
    at::sum_out(sum, grad, others);
  }
}

}  // namespace mybackend::aten
