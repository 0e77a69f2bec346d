// The part of cuDNN 9 that convolutions need: types, constants and functions as its ABI has them.
#pragma once

#include <cstddef>

namespace mybackend::aten::cudnn {

using Handle = struct HandleOpaque*;
using TensorDesc = struct TensorDescOpaque*;
using FilterDesc = struct FilterDescOpaque*;
using ConvolutionDesc = struct ConvolutionDescOpaque*;
using CudaStream = void*;
using Status = int;  // 0: success

enum DataType : int { Float = 0, Double = 1, Half = 2, BFloat16 = 9 };
enum Format : int { NCHW = 0, NHWC = 1 };
enum MathType : int { DefaultMath = 0, TensorOpMath = 1, FmaMath = 3 };
constexpr int kCrossCorrelation = 1;
constexpr int kDeterministic = 1;

struct AlgorithmPerformance {
  int algorithm;
  Status status;
  float time;
  size_t memory;
  int determinism;
  int math_type;
  int reserved[3];
};

struct Functions {
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, CudaStream);
  const char* (*error_string)(Status);
  Status (*tensor_create)(TensorDesc*);
  Status (*tensor_destroy)(TensorDesc);
  Status (*tensor_set)(TensorDesc, DataType, int dims, const int* sizes, const int* strides);
  Status (*filter_create)(FilterDesc*);
  Status (*filter_destroy)(FilterDesc);
  Status (*filter_set)(FilterDesc, DataType, Format, int dims, const int* sizes);
  Status (*convolution_create)(ConvolutionDesc*);
  Status (*convolution_destroy)(ConvolutionDesc);
  Status (*convolution_set)(ConvolutionDesc, int dims, const int* padding, const int* stride, const int* dilation,
                            int mode, DataType compute);
  Status (*convolution_set_groups)(ConvolutionDesc, int groups);
  Status (*convolution_set_math)(ConvolutionDesc, MathType);

  Status (*forward_algorithms)(Handle, TensorDesc x, FilterDesc w, ConvolutionDesc, TensorDesc y, int requested,
                               int* returned, AlgorithmPerformance*);
  Status (*forward_workspace)(Handle, TensorDesc x, FilterDesc w, ConvolutionDesc, TensorDesc y, int algorithm,
                              size_t*);
  Status (*forward)(Handle, const void* alpha, TensorDesc, const void* x, FilterDesc, const void* w, ConvolutionDesc,
                    int algorithm, void* workspace, size_t, const void* beta, TensorDesc, void* y);

  Status (*data_algorithms)(Handle, FilterDesc w, TensorDesc dy, ConvolutionDesc, TensorDesc dx, int requested,
                            int* returned, AlgorithmPerformance*);
  Status (*data_workspace)(Handle, FilterDesc w, TensorDesc dy, ConvolutionDesc, TensorDesc dx, int algorithm, size_t*);
  Status (*data)(Handle, const void* alpha, FilterDesc, const void* w, TensorDesc, const void* dy, ConvolutionDesc,
                 int algorithm, void* workspace, size_t, const void* beta, TensorDesc, void* dx);

  Status (*filter_algorithms)(Handle, TensorDesc x, TensorDesc dy, ConvolutionDesc, FilterDesc dw, int requested,
                              int* returned, AlgorithmPerformance*);
  Status (*filter_workspace)(Handle, TensorDesc x, TensorDesc dy, ConvolutionDesc, FilterDesc dw, int algorithm,
                             size_t*);
  Status (*filter)(Handle, const void* alpha, TensorDesc, const void* x, TensorDesc, const void* dy, ConvolutionDesc,
                   int algorithm, void* workspace, size_t, const void* beta, FilterDesc, void* dw);
};

// Whether the dynamic loader finds the library.
bool available();
// Loads the library on first use; raises an error that names it when it is not there.
const Functions& functions();
// A handle of this thread for a device, set to a stream.
Handle handle(int device, CudaStream stream);

}  // namespace mybackend::aten::cudnn
