// The part of cuBLASLt 12 and 13 that matrix products need: types, constants and functions as its ABI has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mybackend::aten::cublaslt {

using Handle = struct HandleOpaque*;
using MatmulDesc = struct MatmulDescOpaque*;
using MatrixLayout = struct MatrixLayoutOpaque*;
using Preference = struct PreferenceOpaque*;
using CudaStream = void*;
using Status = int;  // 0: success
constexpr Status kNotSupported = 15;

enum DataType : int { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, C_32F = 4, C_64F = 5, R_32I = 10, R_16BF = 14 };
enum ComputeType : int { Compute32F = 68, Compute64F = 70, Compute32I = 72, Compute32FFastTF32 = 77 };
enum Operation : int32_t { N = 0, T = 1 };
enum DescAttribute : int { TransA = 3, TransB = 4, EpilogueKind = 7, BiasPointer = 8, BiasDataType = 26 };
enum LayoutAttribute : int { BatchCount = 5, StridedBatchOffset = 6 };
enum PreferenceAttribute : int { MaxWorkspaceBytes = 1 };
enum EpilogueValue : int { EpilogueDefault = 1, EpilogueRelu = 2, EpilogueBias = 4, EpilogueReluBias = 6 };

struct Algo {
  uint64_t data[8];
};

struct HeuristicResult {
  Algo algo;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

struct Functions {
  Status (*create)(Handle*);
  Status (*desc_create)(MatmulDesc*, ComputeType, DataType scale);
  Status (*desc_destroy)(MatmulDesc);
  Status (*desc_set)(MatmulDesc, DescAttribute, const void*, size_t);
  Status (*layout_create)(MatrixLayout*, DataType, uint64_t rows, uint64_t columns, int64_t leading);
  Status (*layout_destroy)(MatrixLayout);
  Status (*layout_set)(MatrixLayout, LayoutAttribute, const void*, size_t);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, PreferenceAttribute, const void*, size_t);
  Status (*heuristic)(Handle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d, Preference,
                      int requested, HeuristicResult*, int* returned);
  Status (*matmul)(Handle, MatmulDesc, const void* alpha, const void* a, MatrixLayout, const void* b, MatrixLayout,
                   const void* beta, const void* c, MatrixLayout, void* d, MatrixLayout, const Algo*, void* workspace,
                   size_t workspace_bytes, CudaStream);
};

// Loads the library on first use; raises an error that names it when it is not there.
const Functions& functions();
// The handle of a device, made on first use.
Handle handle(int device);

}  // namespace mybackend::aten::cublaslt
