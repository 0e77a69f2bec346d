// Entry points of csrc/kernels/rnn.cu: what an LSTM or GRU cell does after its two matrix products.
//
// All arrays are dense, (rows, gates * hidden) or (rows, hidden); a gate is `hidden` consecutive columns.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

// Gates i, f, g, o. `workspace` (rows, 4 * hidden) keeps them after their activations for the backward.
struct LstmCellArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* input_gates;
  const void* hidden_gates;
  const void* input_bias;  // (4 * hidden), both or neither
  const void* hidden_bias;
  const void* cx;
  void* hy;
  void* cy;
  void* workspace;
};

struct LstmCellBackwardArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* grad_hy;  // either may be nullptr: zero
  const void* grad_cy;
  const void* cx;
  const void* cy;
  const void* workspace;
  void* grad_gates;
  void* grad_cx;
};

// Gates r, z, n. `workspace` (rows, 5 * hidden) keeps r, z, n, hx and the hidden part of n.
struct GruCellArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* input_gates;
  const void* hidden_gates;
  const void* input_bias;  // (3 * hidden), both or neither
  const void* hidden_bias;
  const void* hx;
  void* hy;
  void* workspace;
};

struct GruCellBackwardArgs {
  DType dtype;
  int64_t rows, hidden;
  const void* grad_hy;
  const void* workspace;
  void* grad_input_gates;
  void* grad_hidden_gates;
  void* grad_hx;
};

MB_DECLARE_KERNEL(lstm_cell, void(Stream stream, const LstmCellArgs& args));
MB_DECLARE_KERNEL(lstm_cell_backward, void(Stream stream, const LstmCellBackwardArgs& args));
MB_DECLARE_KERNEL(gru_cell, void(Stream stream, const GruCellArgs& args));
MB_DECLARE_KERNEL(gru_cell_backward, void(Stream stream, const GruCellBackwardArgs& args));

}  // namespace mybackend::kernels
