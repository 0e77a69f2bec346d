#include "csrc/aten/cudnn.h"

#include <array>

#include "csrc/aten/shared_library.h"
#include "csrc/runtime/device.h"

namespace mybackend::aten::cudnn {

bool available() {
  static const bool found = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL) != nullptr;
  return found;
}

const Functions& functions() {
  static const Functions loaded = [] {
    const SharedLibrary library({"libcudnn.so.9"}, "a convolution");
    Functions f;
    library.find(f.create, "cudnnCreate");
    library.find(f.set_stream, "cudnnSetStream");
    library.find(f.error_string, "cudnnGetErrorString");
    library.find(f.tensor_create, "cudnnCreateTensorDescriptor");
    library.find(f.tensor_destroy, "cudnnDestroyTensorDescriptor");
    library.find(f.tensor_set, "cudnnSetTensorNdDescriptor");
    library.find(f.filter_create, "cudnnCreateFilterDescriptor");
    library.find(f.filter_destroy, "cudnnDestroyFilterDescriptor");
    library.find(f.filter_set, "cudnnSetFilterNdDescriptor");
    library.find(f.convolution_create, "cudnnCreateConvolutionDescriptor");
    library.find(f.convolution_destroy, "cudnnDestroyConvolutionDescriptor");
    library.find(f.convolution_set, "cudnnSetConvolutionNdDescriptor");
    library.find(f.convolution_set_groups, "cudnnSetConvolutionGroupCount");
    library.find(f.convolution_set_math, "cudnnSetConvolutionMathType");
    library.find(f.forward_algorithms, "cudnnGetConvolutionForwardAlgorithm_v7");
    library.find(f.forward_workspace, "cudnnGetConvolutionForwardWorkspaceSize");
    library.find(f.forward, "cudnnConvolutionForward");
    library.find(f.data_algorithms, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    library.find(f.data_workspace, "cudnnGetConvolutionBackwardDataWorkspaceSize");
    library.find(f.data, "cudnnConvolutionBackwardData");
    library.find(f.filter_algorithms, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
    library.find(f.filter_workspace, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
    library.find(f.filter, "cudnnConvolutionBackwardFilter");
    return f;
  }();
  return loaded;
}

Handle handle(int device, CudaStream stream) {
  static thread_local std::array<Handle, runtime::kMaxDevices> handles{};
  const Functions& f = functions();
  Status status = 0;
  if (handles[device] == nullptr) status = f.create(&handles[device]);
  if (status == 0) status = f.set_stream(handles[device], stream);
  TORCH_CHECK(status == 0, "mybackend: cuDNN cannot be started: ", f.error_string(status));
  return handles[device];
}

}  // namespace mybackend::aten::cudnn
