// LAPACK-like operators: factorisations, solvers, eigenvalues, and distances between vectors. Upstream's shared code
// checks shapes, allocates and batches; each of its stubs is filled with libtorch's CPU kernel, run by host_call().
//
// HostStub<stub, written> is such a function: `written` has the bit of every tensor argument (counting tensors only)
// that the kernel writes.
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/Cross.h>
#include <ATen/native/Distance.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/ops/_cdist_backward.h>
#include <ATen/ops/_cdist_forward.h>
#include <ATen/ops/_cholesky_solve_helper.h>
#include <ATen/ops/_pdist_backward.h>
#include <ATen/ops/_pdist_forward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/linalg_matrix_exp.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "csrc/aten/factories.h"
#include "csrc/aten/host_call.h"
#include "generated/linalg.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

template <class T>
constexpr bool is_tensor = std::is_same_v<std::remove_cv_t<std::remove_reference_t<T>>, Tensor>;

// What a deferred call keeps of an argument that is not a tensor.
template <class T>
struct Kept {
  using type = std::remove_cv_t<std::remove_reference_t<T>>;
  static const type& give(const type& value) { return value; }
};
template <>
struct Kept<const std::optional<std::string_view>&> {
  using type = std::optional<std::string>;
  static std::optional<std::string_view> give(const type& value) {
    return value ? std::optional<std::string_view>(*value) : std::nullopt;
  }
};

template <class T>
auto keep(const std::remove_reference_t<T>& argument) {
  if constexpr (is_tensor<T>)
    return 0;
  else
    return typename Kept<T>::type(argument);
}

// The index among the tensors of argument `i`.
template <class... Args>
constexpr size_t tensor_index(size_t i) {
  constexpr bool tensor[] = {is_tensor<Args>...};
  size_t index = 0;
  for (size_t k = 0; k < i; k++) index += tensor[k];
  return index;
}

template <class Stub, unsigned written, class Function = std::remove_const_t<decltype(Stub::DEFAULT)>>
struct HostStub;

template <class Stub, unsigned written, class R, class... Args>
struct HostStub<Stub, written, R (*)(Args...)> {
  static constexpr size_t kTensors = (size_t{0} + ... + size_t{is_tensor<Args>});

  static R call(Args... args) {
    const Tensor* tensors[kTensors];
    size_t next = 0;
    ((is_tensor<Args> ? void(tensors[next++] = address(args)) : void()), ...);
    run(tensors, std::make_index_sequence<kTensors>(), std::index_sequence_for<Args...>(),
        std::tuple{keep<Args>(args)...});
    if constexpr (std::is_same_v<R, Tensor&>) return first(args...);
  }

 private:
  template <class T>
  static const Tensor* address(const T& argument) {
    if constexpr (is_tensor<T>)
      return &argument;
    else
      return nullptr;
  }
  template <class... Rest>
  static Tensor& first(Tensor& result, Rest&&...) {
    return result;
  }

  template <size_t i>
  static auto argument(const Tensor* const* tensors) {
    if constexpr ((written >> i & 1) != 0)
      return Output{*tensors[i]};
    else
      return *tensors[i];
  }

  template <size_t i, class T, class Values, class Tensors>
  static decltype(auto) pass(const Values& values, Tensors& on_host) {
    if constexpr (is_tensor<T>)
      return static_cast<Tensor&>(on_host[tensor_index<Args...>(i)]);
    else
      return Kept<T>::give(std::get<i>(values));
  }

  template <size_t... t, size_t... i, class Values>
  static void run(const Tensor* const* tensors, std::index_sequence<t...>, std::index_sequence<i...>,
                  const Values& values) {
    const auto of_device =
        std::find_if(tensors, tensors + kTensors, [](const Tensor* tensor) { return !tensor->is_cpu(); });
    host_call((*of_device)->get_device(),
              [values](const auto&... on_host) {
                Tensor aliases[] = {on_host...};
                Stub::DEFAULT(pass<i, Args>(values, aliases)...);
              },
              argument<t>(tensors)...);
  }
};

void unpack_pivots(at::TensorIterator& iter, const int64_t dim_size, const int64_t max_pivot) {
  host_call(
      iter.tensor(0).get_device(),
      [dim_size, max_pivot](const Tensor& permutation, const Tensor& pivots) {
        at::TensorIterator on_host = at::TensorIteratorConfig()
                                         .set_check_mem_overlap(false)
                                         .check_all_same_dtype(false)
                                         .resize_outputs(false)
                                         .declare_static_shape(pivots.sizes(), /*squash_dim=*/pivots.dim() - 1)
                                         .add_output(permutation)
                                         .add_const_input(pivots)
                                         .build();
        decltype(at::native::unpack_pivots_stub)::DEFAULT(on_host, dim_size, max_pivot);
      },
      Output{iter.tensor(0)}, iter.tensor(1));
}

// Stubs whose CPU kernels exist once per instruction set are reached through their operators.
template <class Operator>
void through_operator(const Tensor& result, const Operator& op, const Tensor& a, const Tensor& b) {
  host_call(
      result.get_device(),
      [op](const Tensor& a, const Tensor& b, const Tensor& result) {
        result.copy_(op(a, b).view(result.sizes()));  // the stub's arguments may have one batch more
      },
      a, b, Output{result});
}

void cross(const Tensor& result, const Tensor& a, const Tensor& b, const int64_t dim) {
  through_operator(result, [dim](const Tensor& a, const Tensor& b) { return at::linalg_cross(a, b, dim); }, a, b);
}

void cdist(Tensor& result, const Tensor& x1, const Tensor& x2, const double p) {
  static constexpr int64_t kNoProduct = 2;
  through_operator(
      result, [p](const Tensor& a, const Tensor& b) { return at::_cdist_forward(a, b, p, kNoProduct); }, x1, x2);
}

void pdist(Tensor& result, const Tensor& self, const double p) {
  through_operator(
      result, [p](const Tensor& self, const Tensor&) { return at::_pdist_forward(self, p); }, self, Tensor());
}

void cdist_backward(Tensor& result, const Tensor& grad, const Tensor& x1, const Tensor& x2, const double p,
                    const Tensor& distance) {
  host_call(
      result.get_device(),
      [p](const Tensor& grad, const Tensor& x1, const Tensor& x2, const Tensor& distance, const Tensor& result) {
        result.copy_(at::_cdist_backward(grad, x1, x2, p, distance).view(result.sizes()));
      },
      grad, x1, x2, distance, Output{result});
}

void pdist_backward(Tensor& result, const Tensor& grad, const Tensor& self, const double p, const Tensor& distance) {
  host_call(
      result.get_device(),
      [p](const Tensor& grad, const Tensor& self, const Tensor& distance, const Tensor& result) {
        result.copy_(at::_pdist_backward(grad, self, p, distance));
      },
      grad, self, distance, Output{result});
}

#define MB_HOST_STUB(stub, written) &mybackend::aten::HostStub<decltype(at::native::stub), written>::call

}  // namespace

Tensor _cholesky_solve_helper(const Tensor& self, const Tensor& A, bool upper) {
  // Columns lie together, as LAPACK returns them.
  const Tensor out = at::empty_like(self.mT(), at::MemoryFormat::Contiguous).mT();
  host_call(
      self.get_device(),
      [upper](const Tensor& self, const Tensor& A, const Tensor& out) {
        out.copy_(at::_cholesky_solve_helper(self, A, upper));
      },
      self, A, Output{out});
  return out;
}

Tensor linalg_matrix_exp(const Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  const Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  host_call(
      self.get_device(), [](const Tensor& self, const Tensor& out) { out.copy_(at::linalg_matrix_exp(self)); }, self,
      Output{out});
  return out;
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cholesky_stub, MB_HOST_STUB(cholesky_stub, 0b11))
REGISTER_PRIVATEUSE1_DISPATCH(cholesky_inverse_stub, MB_HOST_STUB(cholesky_inverse_stub, 0b11))
REGISTER_PRIVATEUSE1_DISPATCH(linalg_eig_stub, MB_HOST_STUB(linalg_eig_stub, 0b0111))
REGISTER_PRIVATEUSE1_DISPATCH(linalg_eig_make_complex_eigenvectors_stub,
                              MB_HOST_STUB(linalg_eig_make_complex_eigenvectors_stub, 0b001))
REGISTER_PRIVATEUSE1_DISPATCH(geqrf_stub, MB_HOST_STUB(geqrf_stub, 0b11))
REGISTER_PRIVATEUSE1_DISPATCH(orgqr_stub, MB_HOST_STUB(orgqr_stub, 0b01))
REGISTER_PRIVATEUSE1_DISPATCH(ormqr_stub, MB_HOST_STUB(ormqr_stub, 0b100))
REGISTER_PRIVATEUSE1_DISPATCH(linalg_eigh_stub, MB_HOST_STUB(linalg_eigh_stub, 0b111))
REGISTER_PRIVATEUSE1_DISPATCH(lstsq_stub, MB_HOST_STUB(lstsq_stub, 0b11111))
REGISTER_PRIVATEUSE1_DISPATCH(triangular_solve_stub, MB_HOST_STUB(triangular_solve_stub, 0b10))
REGISTER_PRIVATEUSE1_DISPATCH(lu_factor_stub, MB_HOST_STUB(lu_factor_stub, 0b111))
REGISTER_PRIVATEUSE1_DISPATCH(unpack_pivots_stub, &mybackend::aten::unpack_pivots)
REGISTER_PRIVATEUSE1_DISPATCH(lu_solve_stub, MB_HOST_STUB(lu_solve_stub, 0b100))
REGISTER_PRIVATEUSE1_DISPATCH(ldl_factor_stub, MB_HOST_STUB(ldl_factor_stub, 0b111))
REGISTER_PRIVATEUSE1_DISPATCH(ldl_solve_stub, MB_HOST_STUB(ldl_solve_stub, 0b100))
REGISTER_PRIVATEUSE1_DISPATCH(svd_stub, MB_HOST_STUB(svd_stub, 0b11111))
REGISTER_PRIVATEUSE1_DISPATCH(cross_stub, &mybackend::aten::cross)
REGISTER_PRIVATEUSE1_DISPATCH(cdist_stub, &mybackend::aten::cdist)
REGISTER_PRIVATEUSE1_DISPATCH(cdist_backward_stub, &mybackend::aten::cdist_backward)
REGISTER_PRIVATEUSE1_DISPATCH(pdist_forward_stub, &mybackend::aten::pdist)
REGISTER_PRIVATEUSE1_DISPATCH(pdist_backward_stub, &mybackend::aten::pdist_backward)
}  // namespace at::native
