#include "csrc/aten/cublaslt.h"

#include <array>
#include <mutex>

#include "csrc/aten/shared_library.h"
#include "csrc/runtime/device.h"

namespace mybackend::aten::cublaslt {

const Functions& functions() {
  static const Functions loaded = [] {
    const SharedLibrary library({"libcublasLt.so.13", "libcublasLt.so.12"}, "a matrix product");
    Functions f;
    library.find(f.create, "cublasLtCreate");
    library.find(f.desc_create, "cublasLtMatmulDescCreate");
    library.find(f.desc_destroy, "cublasLtMatmulDescDestroy");
    library.find(f.desc_set, "cublasLtMatmulDescSetAttribute");
    library.find(f.layout_create, "cublasLtMatrixLayoutCreate");
    library.find(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
    library.find(f.layout_set, "cublasLtMatrixLayoutSetAttribute");
    library.find(f.preference_create, "cublasLtMatmulPreferenceCreate");
    library.find(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    library.find(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    library.find(f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    library.find(f.matmul, "cublasLtMatmul");
    return f;
  }();
  return loaded;
}

Handle handle(int device) {
  static std::mutex lock;
  static std::array<Handle, runtime::kMaxDevices> handles{};
  std::lock_guard<std::mutex> guard(lock);
  if (handles[device] == nullptr) {
    const Status status = functions().create(&handles[device]);
    TORCH_CHECK(status == 0, "mybackend: cublasLtCreate failed with status ", status);
  }
  return handles[device];
}

}  // namespace mybackend::aten::cublaslt
