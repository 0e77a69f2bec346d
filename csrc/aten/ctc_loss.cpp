// Connectionist temporal classification: checks in upstream's words, where each target begins, launches.
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/kernels/ctc_loss.h"
#include "csrc/runtime/errors.h"
#include "generated/ctc_loss.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

// The arguments of a kernel, and the tensors they point into.
struct Ctc {
  Tensor log_probs, targets, lengths;
  kernels::CtcLoss args{};

  Ctc(const Tensor& log_probs_in, const Tensor& targets_in, IntArrayRef input_lengths, IntArrayRef target_lengths,
      int64_t blank)
      : log_probs(log_probs_in), targets(targets_in) {
    at::CheckedFrom name = "ctc_loss_allocate_outputs";
    const at::TensorArg probs_arg{log_probs, "log_probs", 1}, targets_arg{targets, "targets", 2};
    at::checkScalarType(name, targets_arg, targets.scalar_type() == at::kLong ? at::kLong : at::kInt);
    at::checkDim(name, probs_arg, 3);
    at::checkDimRange(name, targets_arg, 1, 3);
    const int64_t batch = log_probs.size(1), classes = log_probs.size(2), time = log_probs.size(0);
    TORCH_CHECK(blank >= 0 && blank < classes, "blank must be in label range");
    TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
    TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");

    const bool padded = targets.dim() == 2;
    const Tensor host = at::empty({3, batch}, at::kLong);
    auto* table = host.mutable_data_ptr<int64_t>();
    int64_t total = 0;
    for (int64_t b = 0; b < batch; b++) {
      TORCH_CHECK(target_lengths[b] >= 0, "Expected target_lengths to have value at least ", 0, ", but got value ",
                  target_lengths[b], " (while checking arguments for ", name, ")");
      TORCH_CHECK(input_lengths[b] >= 0, "Expected input_lengths to have value at least ", 0, ", but got value ",
                  input_lengths[b], " (while checking arguments for ", name, ")");
      TORCH_CHECK(input_lengths[b] <= time, "Expected input_lengths to have value at most ", time, ", but got value ",
                  input_lengths[b], " (while checking arguments for ", name, ")");
      table[b] = input_lengths[b];
      table[batch + b] = target_lengths[b];
      table[2 * batch + b] = padded ? b * targets.stride(0) : total * targets.stride(0);
      total += target_lengths[b];
      args.longest = std::max(args.longest, target_lengths[b]);
    }
    if (padded) {
      at::checkSize(name, targets_arg, 0, batch);
      TORCH_CHECK(targets.size(1) >= args.longest, "Expected tensor to have size at least ", args.longest,
                  " at dimension 1, but got size ", targets.size(1), " for ", targets_arg,
                  " (while checking arguments for ", name, ")");
    } else {
      at::checkSize(name, targets_arg, 0, total);
    }
    lengths = empty_on_current_device({3, batch}, at::kLong);
    lengths.copy_(host);

    const auto index = log_probs.device().index();
    const auto* device_table = lengths.const_data_ptr<int64_t>();
    args.dtype = to_dtype(log_probs.scalar_type());
    args.target_dtype = to_dtype(targets.scalar_type());
    args.time = time;
    args.batch = batch;
    args.classes = classes;
    args.time_stride = log_probs.stride(0);
    args.batch_stride = log_probs.stride(1);
    args.class_stride = log_probs.stride(2);
    args.target_stride = targets.stride(-1);
    args.blank = blank;
    args.log_probs = log_probs.const_data_ptr();
    args.targets = targets.const_data_ptr();
    args.input_length = device_table;
    args.target_length = device_table + batch;
    args.target_begin = device_table + 2 * batch;
    args.errors = runtime::error_record(index);
  }

  Tensor states() const {
    return empty_on_current_device({args.batch, args.time, 2 * args.longest + 1}, log_probs.scalar_type());
  }
  device::Stream stream() const { return runtime::current_stream(log_probs.device().index()); }
};

}  // namespace

std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                     IntArrayRef target_lengths, int64_t blank, bool /*zero_infinity*/) {
  const Ctc ctc(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor loss = empty_on_current_device({ctc.args.batch}, log_probs.scalar_type());
  Tensor log_alpha = ctc.states();
  kernels::ctc_loss(ctc.stream(), ctc.args, loss.mutable_data_ptr(), log_alpha.mutable_data_ptr());
  runtime::check_device_errors(log_probs.device().index());
  return {std::move(loss), std::move(log_alpha)};
}

Tensor _ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                          int64_t blank, bool zero_infinity) {
  const Ctc ctc(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor grad_in = empty_on_current_device(log_probs.sizes(), log_probs.scalar_type());
  const Tensor log_beta = ctc.states(), loss = neg_log_likelihood.contiguous(), alpha = log_alpha.contiguous();
  const Tensor follower = empty_on_current_device({ctc.args.batch, ctc.args.longest}, at::kLong);
  if (grad_in.numel() > 0)
    kernels::ctc_loss_backward(ctc.stream(), ctc.args, grad.const_data_ptr(), grad.dim() > 0 ? grad.stride(0) : 0,
                               loss.const_data_ptr(), alpha.const_data_ptr(), zero_infinity,
                               log_beta.mutable_data_ptr(), follower.mutable_data_ptr<int64_t>(),
                               grad_in.mutable_data_ptr());
  return grad_in;
}

}  // namespace mybackend::aten
