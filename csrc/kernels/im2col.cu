// im2col: columns[n][c][i][j][y][x] = image[n][c][y * stride - padding + i * dilation][...], zero outside of the image.
// col2im: image = the sum of the columns that come from each position; a thread owns a position, so the result does not
// depend on order. A block owns a row of the result.
// Called by csrc/aten/im2col.cpp. Spec: test/ops/test_im2col.py.
#include "csrc/kernels/im2col.h"

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int kThreads = 64;

template <class T>
struct Im2col {
  Im2colArgs a;

  MB_DEVICE void operator()(Block block) const {
    int64_t rest = block.index;
    const int64_t y = rest % a.out[0];
    rest /= a.out[0];
    const int64_t j = rest % a.kernel[1];
    rest /= a.kernel[1];
    const int64_t i = rest % a.kernel[0];
    const int64_t plane = rest / a.kernel[0];  // batch and channel
    const int64_t row = y * a.stride[0] - a.padding[0] + i * a.dilation[0];
    const int64_t begin = j * a.dilation[1] - a.padding[1], stride = a.stride[1], width = a.size[1];
    const T* in = static_cast<const T*>(a.in) + (plane * a.size[0] + row) * width;
    T* out = static_cast<T*>(a.result) + block.index * a.out[1];
    const bool inside = row >= 0 && row < a.size[0];
    block.each(a.out[1], [&](int64_t x) {
      const int64_t column = begin + x * stride;
      T value = T(0);
      if (inside && column >= 0 && column < width) value = in[column];
      out[x] = value;
    });
  }
};

template <class T>
struct Col2im {
  using A = Compute<T>;
  Im2colArgs a;

  MB_DEVICE void operator()(Block block) const {
    const int64_t row = block.index % a.size[0], plane = block.index / a.size[0];
    const int64_t area = a.out[0] * a.out[1];
    const T* columns = static_cast<const T*>(a.in) + plane * a.kernel[0] * a.kernel[1] * area;
    T* out = static_cast<T*>(a.result) + block.index * a.size[1];
    block.each(a.size[1], [&](int64_t column) {
      A sum = A(0);
      for (int64_t i = 0; i < a.kernel[0]; i++) {
        const int64_t down = row + a.padding[0] - i * a.dilation[0];
        const int64_t y = down / a.stride[0];
        if (down < 0 || down % a.stride[0] != 0 || y >= a.out[0]) continue;
        for (int64_t j = 0; j < a.kernel[1]; j++) {
          const int64_t right = column + a.padding[1] - j * a.dilation[1];
          const int64_t x = right / a.stride[1];
          if (right < 0 || right % a.stride[1] != 0 || x >= a.out[1]) continue;
          sum += convert<A>(columns[(i * a.kernel[1] + j) * area + y * a.out[1] + x]);
        }
      }
      out[column] = convert<T>(sum);
    });
  }
};

using Elements = Join<Floats, Halves, Complexes>;

}  // namespace

MB_DEFINE_KERNEL(im2col, (Stream stream, const Im2colArgs& args)) {
  const int64_t rows = args.batch * args.channels * args.kernel[0] * args.kernel[1] * args.out[0];
  visit<Join<Elements, Booleans>>(args.dtype, "im2col_out", [&](auto type) {
    using T = typename decltype(type)::type;
    device::launch(stream, {rows, kThreads, args.out[1]}, Im2col<T>{args});
  });
}

MB_DEFINE_KERNEL(col2im, (Stream stream, const Im2colArgs& args)) {
  const int64_t rows = args.batch * args.channels * args.size[0];
  visit<Elements>(args.dtype, "col2im_out", [&](auto type) {
    using T = typename decltype(type)::type;
    device::launch(stream, {rows, kThreads, args.size[1] * args.kernel[0] * args.kernel[1]}, Col2im<T>{args});
  });
}

}  // namespace mybackend::kernels
