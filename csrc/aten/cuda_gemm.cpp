// cuBLASLt counts columns first, so a row-major problem is handed over transposed: out^T = b^T @ a^T. An operand that
// is dense along either dimension is used in place, by a leading dimension and a transposition; others are copied. The
// algorithm of a problem is asked for once and remembered.
#include "csrc/aten/cuda_gemm.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "csrc/aten/cublaslt.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
namespace lt = cublaslt;

#define MB_CUBLAS_CHECK(expression)                                                               \
  do {                                                                                            \
    const lt::Status mb_status_ = (expression);                                                   \
    TORCH_CHECK(mb_status_ == 0, "mybackend: cuBLASLt status ", mb_status_, " in ", #expression); \
  } while (0)

constexpr size_t kWorkspace = 32 << 20;

// One matrix as the library sees it: `rows` x `columns`, column-major.
struct Matrix {
  uint64_t rows, columns;
  int64_t leading, batch_stride;
  bool transposed;  // relative to the operand that is asked for
};

// What identifies a problem for the choice of an algorithm; compared byte by byte.
struct Problem {
  int device, type, out_type, compute, scale, epilogue;
  int batches, alignment;
  Matrix a, b, c;
};

struct Types {
  lt::DataType operand, out, scale;
  lt::ComputeType compute;
};

Types types_of(const Tensor& a, const Tensor& out) {
  switch (a.scalar_type()) {
    case at::kFloat: {
      const bool tf32 = at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
      return {lt::R_32F, lt::R_32F, lt::R_32F, tf32 ? lt::Compute32FFastTF32 : lt::Compute32F};
    }
    case at::kDouble:
      return {lt::R_64F, lt::R_64F, lt::R_64F, lt::Compute64F};
    case at::kHalf:
      return {lt::R_16F, lt::R_16F, lt::R_32F, lt::Compute32F};
    case at::kBFloat16:
      return {lt::R_16BF, lt::R_16BF, lt::R_32F, lt::Compute32F};
    case at::kComplexFloat:
      return {lt::C_32F, lt::C_32F, lt::C_32F, lt::Compute32F};
    case at::kComplexDouble:
      return {lt::C_64F, lt::C_64F, lt::C_64F, lt::Compute64F};
    case at::kChar:
      if (out.scalar_type() == at::kInt) return {lt::R_8I, lt::R_32I, lt::R_32I, lt::Compute32I};
      [[fallthrough]];
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "\"addmm_cuda\" not implemented for '", a.scalar_type(), "'");
  }
}

// A scaling factor as the library reads it.
struct ScalarStorage {
  alignas(16) char bytes[16];

  ScalarStorage(const at::Scalar& value, lt::DataType type) {
    if (type == lt::R_32F) put(value.to<float>());
    if (type == lt::R_64F) put(value.to<double>());
    if (type == lt::R_32I) put(value.to<int32_t>());
    if (type == lt::C_32F) put(value.to<c10::complex<float>>());
    if (type == lt::C_64F) put(value.to<c10::complex<double>>());
  }

 private:
  template <class T>
  void put(T value) {
    std::memcpy(bytes, &value, sizeof(value));
  }
};

bool rows_are_dense(const Tensor& t) {
  return (t.size(-1) == 1 || t.stride(-1) == 1) &&
         (t.size(-2) == 1 || t.stride(-2) >= std::max<int64_t>(1, t.size(-1)));
}
bool columns_are_dense(const Tensor& t) {
  return rows_are_dense(t.mT());
}

Matrix row_major(const Tensor& t) {
  const int64_t leading = t.size(-2) == 1 ? std::max<int64_t>(1, t.size(-1)) : t.stride(-2);
  return {uint64_t(t.size(-1)), uint64_t(t.size(-2)), leading, t.dim() == 3 ? t.stride(0) : 0, false};
}

// `t` seen column-major, i.e. as t^T; copies it when it is dense along neither dimension.
Matrix operand(Tensor& t) {
  t = t.resolve_conj();
  if (rows_are_dense(t)) return row_major(t);
  if (!columns_are_dense(t)) {
    t = t.contiguous();
    return row_major(t);
  }
  Matrix matrix = row_major(t.mT());
  matrix.transposed = true;
  return matrix;
}

template <class T, lt::Status (*lt::Functions::*destroy)(T)>
struct Owned {
  T value = nullptr;
  ~Owned() {
    if (value != nullptr) (lt::functions().*destroy)(value);
  }
};
using Layout = Owned<lt::MatrixLayout, &lt::Functions::layout_destroy>;

void describe(Layout& layout, const Matrix& matrix, lt::DataType type, int32_t batches) {
  const lt::Functions& f = lt::functions();
  MB_CUBLAS_CHECK(f.layout_create(&layout.value, type, matrix.rows, matrix.columns, matrix.leading));
  if (batches == 1) return;
  MB_CUBLAS_CHECK(f.layout_set(layout.value, lt::BatchCount, &batches, sizeof(batches)));
  MB_CUBLAS_CHECK(f.layout_set(layout.value, lt::StridedBatchOffset, &matrix.batch_stride, sizeof(int64_t)));
}

int alignment_of(const Tensor& t) {
  const auto address = reinterpret_cast<uintptr_t>(t.const_data_ptr());
  return address % 16 == 0 ? 16 : static_cast<int>(address & -address);
}

lt::HeuristicResult choose(const Problem& problem, lt::Handle handle, lt::MatmulDesc desc, const Layout& a,
                           const Layout& b, const Layout& c) {
  static std::mutex lock;
  static std::unordered_map<std::string, lt::HeuristicResult> chosen;
  const std::string key(reinterpret_cast<const char*>(&problem), sizeof(problem));
  std::lock_guard<std::mutex> guard(lock);
  if (const auto found = chosen.find(key); found != chosen.end()) return found->second;
  const lt::Functions& f = lt::functions();
  Owned<lt::Preference, &lt::Functions::preference_destroy> preference;
  MB_CUBLAS_CHECK(f.preference_create(&preference.value));
  MB_CUBLAS_CHECK(f.preference_set(preference.value, lt::MaxWorkspaceBytes, &kWorkspace, sizeof(kWorkspace)));
  lt::HeuristicResult result{};
  int returned = 0;
  MB_CUBLAS_CHECK(
      f.heuristic(handle, desc, a.value, b.value, c.value, c.value, preference.value, 1, &result, &returned));
  TORCH_CHECK(returned > 0, "mybackend: cuBLASLt has no algorithm for this matrix product");
  return chosen.emplace(key, result).first->second;
}

void run(Tensor left, Tensor right, const Tensor& out, const Gemm& gemm) {
  const Types types = types_of(left, out);
  Problem problem;
  std::memset(static_cast<void*>(&problem), 0, sizeof(problem));
  problem.a = operand(left);
  problem.b = operand(right);
  problem.c = row_major(out);
  problem.device = out.get_device();
  problem.type = types.operand;
  problem.out_type = types.out;
  problem.compute = types.compute;
  problem.scale = types.scale;
  problem.batches = out.dim() == 3 ? static_cast<int>(out.size(0)) : 1;
  problem.alignment = std::min({alignment_of(left), alignment_of(right), alignment_of(out)});
  problem.epilogue = gemm.bias.defined() ? (gemm.relu ? lt::EpilogueReluBias : lt::EpilogueBias)
                                         : (gemm.relu ? lt::EpilogueRelu : lt::EpilogueDefault);

  const lt::Functions& f = lt::functions();
  const lt::Handle handle = lt::handle(problem.device);
  Owned<lt::MatmulDesc, &lt::Functions::desc_destroy> desc;
  MB_CUBLAS_CHECK(f.desc_create(&desc.value, types.compute, types.scale));
  const int32_t trans_a = problem.b.transposed ? lt::T : lt::N, trans_b = problem.a.transposed ? lt::T : lt::N;
  MB_CUBLAS_CHECK(f.desc_set(desc.value, lt::TransA, &trans_a, sizeof(trans_a)));
  MB_CUBLAS_CHECK(f.desc_set(desc.value, lt::TransB, &trans_b, sizeof(trans_b)));
  MB_CUBLAS_CHECK(f.desc_set(desc.value, lt::EpilogueKind, &problem.epilogue, sizeof(problem.epilogue)));
  if (gemm.bias.defined()) {
    const void* bias = gemm.bias.const_data_ptr();
    const int32_t type = types.out;
    MB_CUBLAS_CHECK(f.desc_set(desc.value, lt::BiasPointer, &bias, sizeof(bias)));
    MB_CUBLAS_CHECK(f.desc_set(desc.value, lt::BiasDataType, &type, sizeof(type)));
  }
  Layout a, b, c;  // of the transposed problem: its first operand is `right`
  describe(a, problem.b, types.operand, problem.batches);
  describe(b, problem.a, types.operand, problem.batches);
  describe(c, problem.c, types.out, problem.batches);
  const lt::HeuristicResult algorithm = choose(problem, handle, desc.value, a, b, c);

  const Tensor workspace = at::empty({static_cast<int64_t>(algorithm.workspace)}, out.options().dtype(at::kByte));
  const ScalarStorage alpha(gemm.alpha, types.scale), beta(gemm.beta, types.scale);
  MB_CUBLAS_CHECK(f.matmul(handle, desc.value, alpha.bytes, right.const_data_ptr(), a.value, left.const_data_ptr(),
                           b.value, beta.bytes, out.const_data_ptr(), c.value, out.mutable_data_ptr(), c.value,
                           &algorithm.algo, workspace.mutable_data_ptr(), algorithm.workspace,
                           runtime::current_stream(out.get_device())));
}

}  // namespace

void cuda_gemm(const Gemm& gemm) {
  const Tensor& out = gemm.out;
  if (out.numel() == 0) return;
  if (gemm.a.size(-1) == 0) {
    gemm.beta.equal(0.0) ? out.zero_() : out.mul_(gemm.beta);
    if (gemm.bias.defined()) out.add_(gemm.bias);
    if (gemm.relu) out.relu_();
    return;
  }
  if (rows_are_dense(out)) return run(gemm.a, gemm.b, out, gemm);
  if (columns_are_dense(out) && !gemm.bias.defined()) return run(gemm.b.mT(), gemm.a.mT(), out.mT(), gemm);
  const Tensor dense = out.contiguous();
  run(gemm.a, gemm.b, dense, gemm);
  out.copy_(dense);
}

}  // namespace mybackend::aten
