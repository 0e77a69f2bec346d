#include "csrc/aten/library.h"
namespace mybackend::aten {
const Library& cuda_library() { TORCH_CHECK_NOT_IMPLEMENTED(false, "soon"); }
}
