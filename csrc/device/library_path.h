// Where this library lies: the driver and kernel libraries are its neighbours.
#pragma once

#include <dlfcn.h>

#include <string>

namespace mybackend::device {

// Path of `file` in the folder of the library (or program) that holds `symbol`.
inline std::string beside(const void* symbol, const char* file) {
  Dl_info info;
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return file;
  const std::string self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return slash == std::string::npos ? file : self.substr(0, slash + 1) + file;
}

}  // namespace mybackend::device
