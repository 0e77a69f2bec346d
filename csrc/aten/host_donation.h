// Donation: memory that a CPU operator without an out= variant is offered for its results.
//
//   Donation donation({out});
//   donation.settle({at::convolution(...)});     // already in `out`, or copied there
//
// While a Donation lives, an allocation of CPU memory by this thread that asks for exactly as many bytes as an offered
// tensor has is given that tensor's memory, once. Which allocation that is does not matter for correctness: `settle`
// looks where the result lies. What was given away is not freed by its taker and must be dead when the Donation ends.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <initializer_list>

namespace mybackend::aten {

class Donation {
 public:
  static constexpr size_t kMost = 3;

  // Contiguous or channels_last tensors of the host; an undefined one offers nothing.
  explicit Donation(std::initializer_list<at::Tensor> tensors);
  ~Donation();
  Donation(const Donation&) = delete;
  Donation& operator=(const Donation&) = delete;

  // Makes each tensor hold its result.
  void settle(std::initializer_list<at::Tensor> results);

  // Memory for an allocation of `bytes`, or nullptr.
  static void* take(size_t bytes);

 private:
  std::array<at::Tensor, kMost> tensors_;
  std::array<bool, kMost> taken_{};
  size_t count_ = 0;
  Donation* outer_;
};

}  // namespace mybackend::aten
