// The pointwise part of recurrent cells.
//   LSTM  i, f, o = sigmoid(gates), g = tanh(gate);  cy = f * cx + i * g;  hy = o * tanh(cy)
//   GRU   r, z = sigmoid(gates), n = tanh(in + r * hn);  hy = n + z * (hx - n)
// where gates are the sums of both products and both biases. Half and bfloat16 are computed in float.
// A block owns some rows; its threads share a row's columns.
// Called by csrc/aten/rnn.cpp. Spec: test/ops/test_rnn.py.
#include "csrc/kernels/rnn.h"

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int64_t kElementsPerBlock = 1024;
constexpr int kThreads = 128;

template <class A>
MB_DEVICE A sigmoid(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

// Calls f(row) for the rows of a block.
template <class F>
MB_DEVICE void each_row(Block block, int64_t rows, int64_t hidden, F f) {
  const int64_t per_block = hidden < kElementsPerBlock ? kElementsPerBlock / hidden : 1;
  const int64_t begin = block.index * per_block;
  const int64_t end = begin + per_block < rows ? begin + per_block : rows;
  for (int64_t row = begin; row < end; row++) f(row);
}

device::Grid rows_grid(int64_t rows, int64_t hidden) {
  const int64_t per_block = hidden < kElementsPerBlock ? kElementsPerBlock / hidden : 1;
  return {device::ceil_div(rows, per_block), kThreads, per_block * hidden * 8};
}

template <class T, bool biased>
struct LstmCell {
  using A = Compute<T>;
  int64_t rows, hidden;
  const T *input, *state, *input_bias, *state_bias, *cx;
  T *hy, *cy, *workspace;

  MB_DEVICE A gate(const T* x, const T* h, int64_t c) const {
    A sum = convert<A>(x[c]) + convert<A>(h[c]);
    if constexpr (biased) sum += convert<A>(input_bias[c]) + convert<A>(state_bias[c]);
    return sum;
  }

  MB_DEVICE void operator()(Block block) const {
    const int64_t n = hidden;
    each_row(block, rows, n, [&](int64_t row) {
      const T* x = input + row * 4 * n;
      const T* h = state + row * 4 * n;
      const T* c0 = cx + row * n;
      T* kept = workspace + row * 4 * n;
      T* h1 = hy + row * n;
      T* c1 = cy + row * n;
      block.each(n, [&](int64_t c) {
        const A i = sigmoid(gate(x, h, c));
        const A f = sigmoid(gate(x, h, c + n));
        const A g = math::tanh(gate(x, h, c + 2 * n));
        const A o = sigmoid(gate(x, h, c + 3 * n));
        const A cell = f * convert<A>(c0[c]) + i * g;
        c1[c] = convert<T>(cell);
        h1[c] = convert<T>(o * math::tanh(cell));
        kept[c] = convert<T>(i);
        kept[c + n] = convert<T>(f);
        kept[c + 2 * n] = convert<T>(g);
        kept[c + 3 * n] = convert<T>(o);
      });
    });
  }
};

template <class T, bool has_hy, bool has_cy>
struct LstmCellBackward {
  using A = Compute<T>;
  int64_t rows, hidden;
  const T *grad_hy, *grad_cy, *cx, *cy, *workspace;
  T *grad_gates, *grad_cx;

  MB_DEVICE void operator()(Block block) const {
    const int64_t n = hidden;
    each_row(block, rows, n, [&](int64_t row) {
      const T* kept = workspace + row * 4 * n;
      T* to = grad_gates + row * 4 * n;
      const int64_t at = row * n;
      block.each(n, [&](int64_t c) {
        const A i = convert<A>(kept[c]), f = convert<A>(kept[c + n]);
        const A g = convert<A>(kept[c + 2 * n]), o = convert<A>(kept[c + 3 * n]);
        A dh = A(0), dc = A(0);
        if constexpr (has_hy) dh = convert<A>(grad_hy[at + c]);
        if constexpr (has_cy) dc = convert<A>(grad_cy[at + c]);
        const A t = math::tanh(convert<A>(cy[at + c]));
        dc += dh * o * (A(1) - t * t);
        to[c] = convert<T>(dc * g * (A(1) - i) * i);
        to[c + n] = convert<T>(dc * convert<A>(cx[at + c]) * (A(1) - f) * f);
        to[c + 2 * n] = convert<T>(dc * i * (A(1) - g * g));
        to[c + 3 * n] = convert<T>(dh * t * (A(1) - o) * o);
        grad_cx[at + c] = convert<T>(dc * f);
      });
    });
  }
};

template <class T, bool biased>
struct GruCell {
  using A = Compute<T>;
  int64_t rows, hidden;
  const T *input, *state, *input_bias, *state_bias, *hx;
  T *hy, *workspace;

  MB_DEVICE void operator()(Block block) const {
    const int64_t n = hidden;
    each_row(block, rows, n, [&](int64_t row) {
      const T* x = input + row * 3 * n;
      const T* h = state + row * 3 * n;
      const T* h0 = hx + row * n;
      T* kept = workspace + row * 5 * n;
      T* h1 = hy + row * n;
      block.each(n, [&](int64_t c) {
        A reset = convert<A>(x[c]) + convert<A>(h[c]);
        A update = convert<A>(x[c + n]) + convert<A>(h[c + n]);
        A candidate = convert<A>(x[c + 2 * n]);
        A from_state = convert<A>(h[c + 2 * n]);
        if constexpr (biased) {
          reset += convert<A>(input_bias[c]) + convert<A>(state_bias[c]);
          update += convert<A>(input_bias[c + n]) + convert<A>(state_bias[c + n]);
          candidate += convert<A>(input_bias[c + 2 * n]);
          from_state += convert<A>(state_bias[c + 2 * n]);
        }
        const A r = sigmoid(reset), z = sigmoid(update);
        const A m = math::tanh(candidate + r * from_state);
        const A before = convert<A>(h0[c]);
        h1[c] = convert<T>(m + z * (before - m));
        kept[c] = convert<T>(r);
        kept[c + n] = convert<T>(z);
        kept[c + 2 * n] = convert<T>(m);
        kept[c + 3 * n] = h0[c];
        kept[c + 4 * n] = convert<T>(from_state);
      });
    });
  }
};

template <class T>
struct GruCellBackward {
  using A = Compute<T>;
  int64_t rows, hidden;
  const T *grad_hy, *workspace;
  T *grad_input, *grad_state, *grad_hx;

  MB_DEVICE void operator()(Block block) const {
    const int64_t n = hidden;
    each_row(block, rows, n, [&](int64_t row) {
      const T* kept = workspace + row * 5 * n;
      T* dx = grad_input + row * 3 * n;
      T* dh = grad_state + row * 3 * n;
      const int64_t at = row * n;
      block.each(n, [&](int64_t c) {
        const A r = convert<A>(kept[c]), z = convert<A>(kept[c + n]), m = convert<A>(kept[c + 2 * n]);
        const A before = convert<A>(kept[c + 3 * n]), from_state = convert<A>(kept[c + 4 * n]);
        const A grad = convert<A>(grad_hy[at + c]);
        const A update = grad * (before - m) * (A(1) - z) * z;
        const A candidate = grad * (A(1) - z) * (A(1) - m * m);
        const A reset = candidate * from_state * (A(1) - r) * r;
        dx[c] = convert<T>(reset);
        dx[c + n] = convert<T>(update);
        dx[c + 2 * n] = convert<T>(candidate);
        dh[c] = convert<T>(reset);
        dh[c + n] = convert<T>(update);
        dh[c + 2 * n] = convert<T>(candidate * r);
        grad_hx[at + c] = convert<T>(grad * z);
      });
    });
  }
};

template <class T>
const T* in(const void* pointer) {
  return static_cast<const T*>(pointer);
}
template <class T>
T* out(void* pointer) {
  return static_cast<T*>(pointer);
}

template <class T, bool biased>
void run_lstm(Stream stream, const LstmCellArgs& a) {
  device::launch(
      stream, rows_grid(a.rows, a.hidden),
      LstmCell<T, biased>{a.rows, a.hidden, in<T>(a.input_gates), in<T>(a.hidden_gates), in<T>(a.input_bias),
                          in<T>(a.hidden_bias), in<T>(a.cx), out<T>(a.hy), out<T>(a.cy), out<T>(a.workspace)});
}

template <class T, bool has_hy, bool has_cy>
void run_lstm_backward(Stream stream, const LstmCellBackwardArgs& a) {
  device::launch(
      stream, rows_grid(a.rows, a.hidden),
      LstmCellBackward<T, has_hy, has_cy>{a.rows, a.hidden, in<T>(a.grad_hy), in<T>(a.grad_cy), in<T>(a.cx),
                                          in<T>(a.cy), in<T>(a.workspace), out<T>(a.grad_gates), out<T>(a.grad_cx)});
}

template <class T, bool biased>
void run_gru(Stream stream, const GruCellArgs& a) {
  device::launch(stream, rows_grid(a.rows, a.hidden),
                 GruCell<T, biased>{a.rows, a.hidden, in<T>(a.input_gates), in<T>(a.hidden_gates), in<T>(a.input_bias),
                                    in<T>(a.hidden_bias), in<T>(a.hx), out<T>(a.hy), out<T>(a.workspace)});
}

using CellTypes = Join<Floats, Halves>;

}  // namespace

MB_DEFINE_KERNEL(lstm_cell, (Stream stream, const LstmCellArgs& args)) {
  visit<CellTypes>(args.dtype, "_thnn_fused_lstm_cell", [&](auto type) {
    using T = typename decltype(type)::type;
    args.input_bias != nullptr ? run_lstm<T, true>(stream, args) : run_lstm<T, false>(stream, args);
  });
}

MB_DEFINE_KERNEL(lstm_cell_backward, (Stream stream, const LstmCellBackwardArgs& args)) {
  visit<CellTypes>(args.dtype, "_thnn_fused_lstm_cell_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.grad_hy == nullptr) return run_lstm_backward<T, false, true>(stream, args);
    if (args.grad_cy == nullptr) return run_lstm_backward<T, true, false>(stream, args);
    run_lstm_backward<T, true, true>(stream, args);
  });
}

MB_DEFINE_KERNEL(gru_cell, (Stream stream, const GruCellArgs& args)) {
  visit<CellTypes>(args.dtype, "_thnn_fused_gru_cell", [&](auto type) {
    using T = typename decltype(type)::type;
    args.input_bias != nullptr ? run_gru<T, true>(stream, args) : run_gru<T, false>(stream, args);
  });
}

MB_DEFINE_KERNEL(gru_cell_backward, (Stream stream, const GruCellBackwardArgs& args)) {
  visit<CellTypes>(args.dtype, "_thnn_fused_gru_cell_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    device::launch(
        stream, rows_grid(args.rows, args.hidden),
        GruCellBackward<T>{args.rows, args.hidden, in<T>(args.grad_hy), in<T>(args.workspace),
                           out<T>(args.grad_input_gates), out<T>(args.grad_hidden_gates), out<T>(args.grad_hx)});
  });
}

}  // namespace mybackend::kernels
