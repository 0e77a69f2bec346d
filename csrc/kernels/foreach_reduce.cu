// Norms and maxima of every tensor of a list. Called by csrc/aten/foreach_reduce.cpp. Spec: test/ops/test_foreach.py.
//
// A tensor of one chunk is finished by its block. Chunks of larger ones leave partial results, which a second launch
// combines: the order is fixed, and no result depends on the other tensors or on the number of threads.
#include <vector>

#include "csrc/kernels/foreach.h"
#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

// What is reduced: `term` of an element, terms added or their maximum taken, and `finish` of the total.
template <class T>
struct SumOfAbsolutes {
  static constexpr bool adds = true;
  MB_DEVICE static T term(T x) { return math::fabs(x); }
  MB_DEVICE static T finish(T x) { return x; }
};
template <class T>
struct Euclidean {
  static constexpr bool adds = true;
  MB_DEVICE static T term(T x) { return x * x; }
  MB_DEVICE static T finish(T x) { return math::sqrt(x); }
};
template <class T>
struct LargestAbsolute {
  static constexpr bool adds = false;
  MB_DEVICE static T term(T x) { return math::fabs(x); }
  MB_DEVICE static T finish(T x) { return x; }
};
template <class T>
struct Largest {
  static constexpr bool adds = false;
  MB_DEVICE static T term(T x) { return x; }
  MB_DEVICE static T finish(T x) { return x; }
};

template <class R, class T>
struct Term {
  MB_DEVICE T operator()(T x) const { return R::term(x); }
};
template <class T>
struct Itself {
  MB_DEVICE T operator()(T x) const { return x; }
};

template <class T, bool Adds, int N, class F>
MB_DEVICE T combine(Block block, const Span<N>& span, int k, const F& f) {
  if constexpr (Adds) {
    return device::sum_in_span<T>(block, span, k, f);
  } else {
    return device::max_in_span<T>(block, span, k, f);
  }
}

template <class T>
struct Target {
  void* out;   // of the tensor
  T* partial;  // the tensor's partial results, or null when its only chunk finishes it
};

template <class R, class T>
struct ReduceChunk {
  DType out_dtype;
  MB_DEVICE void operator()(Block block, const Span<1>& span, Target<T> target) const {
    const T total = combine<T, R::adds>(block, span, 0, Term<R, T>{});
    if (target.partial == nullptr) {
      device::store_one(block, target.out, R::finish(total), out_dtype);
    } else {
      device::store_one(block, target.partial + span.position / kReduceChunk, total, dtype_of<T>);
    }
  }
};

template <class R, class T>
struct Finish {
  DType out_dtype;
  MB_DEVICE void operator()(Block block, const Span<1>& partial, void* out) const {
    device::store_one(block, out, R::finish(combine<T, R::adds>(block, partial, 0, Itself<T>{})), out_dtype);
  }
};

template <class R, class T>
void reduce(Stream stream, const TensorLists& lists, void* partial) {
  TensorLists elements;
  elements.count = lists.count;
  elements.numel = lists.numel;
  elements.data[0] = lists.data[1];
  elements.dtype[0] = lists.dtype[1];
  const ReduceChunk<R, T> chunks{lists.dtype[0]};
  // Tensors of several chunks: how many partial results there are, where, and where the result goes.
  std::vector<int64_t> counts;
  std::vector<void*> places, outs;
  T* next = static_cast<T*>(partial);
  multi_tensor<1, Target<T>>(stream, elements, kReduceChunk, chunks, [&](int64_t t) {
    Target<T> target{lists.data[0][t], nullptr};
    if (lists.numel[t] > kReduceChunk) {
      target.partial = next;
      counts.push_back(device::ceil_div(lists.numel[t], kReduceChunk));
      places.push_back(next);
      outs.push_back(target.out);
      next += counts.back();
    }
    return target;
  });
  TensorLists partials;
  partials.count = int64_t(counts.size());
  partials.numel = counts.data();
  partials.data[0] = places.data();
  partials.dtype[0] = dtype_of<T>;
  multi_tensor<1, void*>(stream, partials, std::numeric_limits<int64_t>::max(), Finish<R, T>{lists.dtype[0]},
                         [&](int64_t t) { return outs[size_t(t)]; });
}

}  // namespace

MB_DEFINE_KERNEL(foreach_norm, (Stream stream, const TensorLists& lists, Norm norm, DType compute, void* partial)) {
  visit<Floats>(compute, "foreach_tensor_norm", [&](auto type) {
    using T = typename decltype(type)::type;
    switch (norm) {
      case Norm::L1:
        return reduce<SumOfAbsolutes<T>, T>(stream, lists, partial);
      case Norm::L2:
        return reduce<Euclidean<T>, T>(stream, lists, partial);
      case Norm::Inf:
        return reduce<LargestAbsolute<T>, T>(stream, lists, partial);
    }
  });
}

MB_DEFINE_KERNEL(foreach_max, (Stream stream, const TensorLists& lists, void* partial)) {
  visit<Join<Floats, Integers>>(compute_dtype(lists.dtype[1]), "foreach_tensor_max", [&](auto type) {
    using T = typename decltype(type)::type;
    reduce<Largest<T>, T>(stream, lists, partial);
  });
}

}  // namespace mybackend::kernels
